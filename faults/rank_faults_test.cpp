#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faults/budget.h"
#include "faults/fake_world.h"

namespace firedrill {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

const Position at_work{.attempt = 1, .rank = 1, .step = 3, .phase = Phase::backward};

Status call(FakeWorld& world, const FaultSpec& fault, Pulse* pulse = nullptr) {
  const std::vector<FaultSpec> plan = {fault};
  Injector injector(plan, {}, at_work, world, nullptr, pulse);
  return injector.around({.op = SeamOp::compute}, [] { return Status(); });
}

TEST(RankFaults, EachTakesItsEffectAfterItWasJournaled) {
  for (const auto& [kind, what] : {std::pair(FaultKind::hang, "hang"), std::pair(FaultKind::stall, "stall")}) {
    FakeWorld world;
    EXPECT_TRUE(call(world, {.kind = kind, .at = {.rank = 1}}).failed_with(Code::dead)) << "the rank is gone";
    EXPECT_THAT(world.did, ElementsAre(what));
    EXPECT_EQ(world.journaled.size(), 1U);
  }
}

TEST(RankFaults, AnExitCarriesItsCode) {
  for (const int code : {0, 3}) {
    FakeWorld world;
    EXPECT_TRUE(call(world, {.kind = FaultKind::exit, .at = {.rank = 1}, .code = code}).failed_with(Code::dead));
    EXPECT_THAT(world.did, ElementsAre(fmt::format("exit {}", code)));
  }
}

TEST(RankFaults, APreemptedRankGoesOn) {
  FakeWorld world;
  EXPECT_TRUE(call(world, {.kind = FaultKind::preempt, .at = {.rank = 1}}));
  EXPECT_THAT(world.did, ElementsAre("preempt"));
}

TEST(RankFaults, ASlowCallTakesSoMuchLonger) {
  FakeWorld world;
  const Time before = world.now();
  EXPECT_TRUE(call(world, {.kind = FaultKind::slow, .at = {.rank = 1}, .delay = milliseconds(30)}));
  EXPECT_EQ(world.now() - before, milliseconds(30));
}

TEST(RankFaults, EveryCallIsABeatOfThePulseAndOneThatNeverComesBackIsTheLast) {
  FakeWorld world;
  Pulse pulse;
  (void)call(world, {.kind = FaultKind::stall, .at = {.rank = 0}}, &pulse);
  EXPECT_EQ(pulse.read().progress, 1U) << "also where no fault can hit";
  EXPECT_EQ(pulse.read().phase, Phase::backward);
  EXPECT_EQ(pulse.read().step, 3);
}

TEST(RankFaults, ADelayThatIsOverIsABeatOfThePulse) {
  FakeWorld world;
  Pulse pulse;
  (void)call(world, {.kind = FaultKind::slow, .at = {.rank = 1}, .delay = milliseconds(30)}, &pulse);
  EXPECT_EQ(pulse.read().progress, 2U);
}

Job job_with(Duration deadline) {
  Job job;
  job.lanes.dp = 4;
  job.steps = 12;
  job.checkpoint.every = 2;
  job.cluster.deadline = deadline;
  return job;
}

TEST(RankFaults, SlownessHasABoundOfACallAndOneOfAWait) {
  Job job = job_with(milliseconds(1000));
  job.cluster.heartbeat = milliseconds(100);
  const auto within = [&job](Duration delay, int times) {
    return slows_within_bound({.kind = FaultKind::slow, .times = times, .delay = delay}, job);
  };
  EXPECT_TRUE(within(milliseconds(900), 4));
  EXPECT_FALSE(within(milliseconds(901), 1)) << "the end of one call told later than a deadline";
  EXPECT_FALSE(within(milliseconds(500), 8)) << "one wait longer than four";
  EXPECT_FALSE(within(milliseconds(100), 0));
  EXPECT_TRUE(within(milliseconds(10), 0));
}

TEST(RankFaults, TheBudgetCountsThoseThatEndAnAttempt) {
  const Job job = job_with(milliseconds(1000));
  for (const FaultKind kind : {FaultKind::hang, FaultKind::stall, FaultKind::exit, FaultKind::preempt}) {
    EXPECT_THAT(mistakes_in_budget({{.kind = kind, .at = {.rank = 1}}}, job, 0), ElementsAre(HasSubstr("budget to 1")));
  }
  const FaultSpec slow{.kind = FaultKind::slow, .at = {.rank = 1}, .times = 8, .delay = milliseconds(100)};
  EXPECT_THAT(mistakes_in_budget({slow}, job, 0), IsEmpty());
  FaultSpec slower = slow;
  slower.delay = milliseconds(900);
  EXPECT_THAT(mistakes_in_budget({slower}, job, 0), ElementsAre(HasSubstr("budget to 1")));
}

TEST(RankFaults, OptionsAreChecked) {
  const Job job = job_with(milliseconds(1000));
  const Layout layout{.dp = 4};
  EXPECT_THAT(mistakes_in_fault({.kind = FaultKind::slow, .at = {.rank = 1}}, job, layout),
              ElementsAre(StartsWith("slow.delay")));
  EXPECT_THAT(mistakes_in_fault({.kind = FaultKind::exit, .at = {.rank = 1}, .code = 256}, job, layout),
              ElementsAre(StartsWith("exit.code")));
}

}  // namespace
}  // namespace firedrill

#include <gmock/gmock.h>

#include <set>

#include "engine/base/rng.h"
#include "faults/budget.h"
#include "harness/run/test_runs.h"

namespace firedrill {
namespace {

Census must_count(Session& session, const Plan& plan) {
  Result<Census> census = session.census(plan);
  FD_CHECK(static_cast<bool>(census), "{}", describe(census.error()));
  return *std::move(census);
}

FaultSpec of_kind(FaultKind kind) {
  FaultSpec fault{.kind = kind, .at = {}};
  fault.delay = std::chrono::milliseconds(1);
  fault.code = 3;
  fault.looks = 1;
  if (kind == FaultKind::clock_skew) fault.behind = std::chrono::seconds(1);
  return fault;
}

// Whether a run of `plan` with the fault there fires it.
bool fires(Session& session, Plan plan, const FaultSpec& fault) {
  plan.faults = {fault};
  plan.recovery.budget = 3;
  plan.seed += 17;  // another order of ranks than was counted
  const Result<Trial> trial = session.trial(plan);
  EXPECT_TRUE(trial) << describe(trial.error());
  return trial && trial->faults_fired > 0;
}

// Draws places for every kind; each drawn one must fire there. Returns the kinds that have places.
std::set<std::string_view> fire_drawn_ones(Session& session, const Plan& plan, int attempt, int draws) {
  const Census census = must_count(session, plan);
  std::set<std::string_view> kinds;
  Rng rng(5);
  for (const FaultKindInfo& info : fault_kinds()) {
    FaultSpec like = of_kind(info.kind);
    like.at.attempt = attempt;
    const std::vector<FaultPlace> places = places_of(like, census);
    if (places.empty()) continue;
    kinds.insert(info.name);
    for (int i = 0; i < draws; ++i) {
      const FaultSpec fault = placed(like, places[rng.below(places.size())]);
      EXPECT_TRUE(fires(session, plan, fault)) << describe(fault);
      EXPECT_THAT(mistakes_in_fault(fault, plan.job, plan.layout), testing::IsEmpty()) << describe(fault);
    }
  }
  return kinds;
}

TEST(Census, AFaultDrawnAtAnyOfItsPlacesFires) {
  Session session({.probes = false});
  Plan plan = quiet_nano();
  plan.layout.guard = Guard::check;
  std::set<std::string_view> without;
  for (const FaultKindInfo& info : fault_kinds()) without.insert(info.name);
  for (const std::string_view kind : fire_drawn_ones(session, plan, 1, 3)) without.erase(kind);
  EXPECT_THAT(without, testing::ElementsAre("reorder_calls")) << "its ranks wait for each call before the next one";
}

TEST(Census, CallsChangePlacesWhereARankStartsSeveral) {
  Session session({.probes = false});
  Plan plan = quiet_nano();
  plan.layout = {.dp = 2, .bucket_bytes = 1, .guard = Guard::check};
  const std::vector<FaultPlace> places = places_of(FaultKind::reorder_calls, must_count(session, plan));
  ASSERT_FALSE(places.empty());
  for (std::size_t i = 0; i < places.size(); i += places.size() / 10 + 1) {
    const FaultSpec fault = placed(of_kind(FaultKind::reorder_calls), places[i]);
    EXPECT_TRUE(fires(session, plan, fault)) << describe(fault);
    EXPECT_EQ(session.history()[session.history().of(EventKind::fault_fired).front()].step, places[i].step);
  }
}

TEST(Census, PlacesOfAnAttemptBehindAKillFireToo) {
  Session session({.probes = false});
  Plan plan = quiet_nano();
  plan.faults = {FaultSpec{.kind = FaultKind::kill, .at = {.rank = 1, .step = 7, .phase = Phase::backward}}};
  const Census census = must_count(session, plan);
  FaultSpec like = of_kind(FaultKind::io_error);
  like.at.attempt = 2;
  like.at.phase = Phase::restore;
  const std::vector<FaultPlace> places = places_of(like, census);
  ASSERT_FALSE(places.empty());
  plan.faults.push_back(placed(like, places.back()));
  plan.recovery.budget = 3;
  EXPECT_EQ(must_run(session, plan).faults_fired, 2);
  like.at.attempt = 1;
  EXPECT_THAT(places_of(like, census), testing::IsEmpty()) << "the first attempt restores nothing";
}

TEST(Census, BehindTheLastPlaceOfAStepAndPhaseNothingFires) {
  Session session({.probes = false});
  const Plan plan = quiet_nano();
  const Census census = must_count(session, plan);
  for (const FaultKind kind : {FaultKind::kill, FaultKind::io_error, FaultKind::skip_call, FaultKind::drop_message,
                               FaultKind::bit_flip, FaultKind::unreadable_shard}) {
    const std::vector<FaultPlace> places = places_of(kind, census);
    ASSERT_FALSE(places.empty());
    FaultPlace place = places[places.size() / 2];
    for (const FaultPlace& other : places) {
      if (std::tie(other.rank, other.step, other.phase) == std::tie(place.rank, place.step, place.phase)) place = other;
    }
    EXPECT_TRUE(fires(session, plan, placed(of_kind(kind), place)));
    ++place.nth;
    EXPECT_FALSE(fires(session, plan, placed(of_kind(kind), place))) << describe(placed(of_kind(kind), place));
  }
}

TEST(Census, CountsBothTasksOfARankThatPublishesAside) {
  Session session({.probes = false});
  Plan plan = quiet_nano();
  plan.job.checkpoint.mode = PublishMode::async;
  FaultSpec like = of_kind(FaultKind::io_error);
  like.at.phase = Phase::save;
  like.at.file_op = FileOp::write;
  const std::vector<FaultPlace> places = places_of(like, must_count(session, plan));
  ASSERT_FALSE(places.empty());
  EXPECT_TRUE(fires(session, plan, placed(like, places[places.size() / 2])));
}

}  // namespace
}  // namespace firedrill

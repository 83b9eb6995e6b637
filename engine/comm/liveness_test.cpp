#include "engine/comm/liveness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firedrill {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr LivenessLimits limits{.deadline = milliseconds(1000), .heartbeat = milliseconds(100)};

// Some ranks and their watchdog. Every rank beats each 100 ms and makes progress, unless a test says otherwise.
class Crew {
 public:
  explicit Crew(int ranks, const LivenessRules& rules = right()) : watchdog(ranks, limits, rules, Time{0}) {
    pulses.resize(static_cast<std::size_t>(ranks));
    silent.resize(static_cast<std::size_t>(ranks));
    idle.resize(static_cast<std::size_t>(ranks));
  }
  static const LivenessRules& right() {
    static const LivenessRules rules;
    return rules;
  }
  // The first blame within so much time.
  std::optional<Alarm> watch(milliseconds time) {
    for (const Time end = now + time; now < end;) {
      now += limits.heartbeat;
      ++beats;
      for (std::size_t rank = 0; rank < pulses.size(); ++rank) {
        const bool waits = pulses[rank].waits_for != PulseReading::nobody;
        if (!idle[rank] && !waits) ++pulses[rank].progress;
        if (!silent[rank]) watchdog.heard(static_cast<int>(rank), {.pulse = pulses[rank], .beats = beats}, now);
      }
      if (auto blame = watchdog.look(now)) return blame;
    }
    return std::nullopt;
  }

  Watchdog watchdog;
  std::vector<PulseReading> pulses;
  std::vector<bool> silent;
  std::vector<bool> idle;
  Time now{0};
  std::uint64_t beats = 0;
};

TEST(Watchdog, RanksThatWorkAreLeftAlone) { EXPECT_FALSE(Crew(3).watch(milliseconds(20'000))); }

TEST(Watchdog, ARankThatIsNoLongerHeardOfIsStoppedWithinADeadline) {
  Crew crew(3);
  crew.watch(milliseconds(3000));
  crew.silent[1] = true;
  crew.pulses[0].waits_for = 1;
  const auto blame = crew.watch(milliseconds(20'000));
  ASSERT_TRUE(blame);
  EXPECT_EQ(blame->rank, 1);
  EXPECT_EQ(blame->suspicion, Suspicion::stopped);
  EXPECT_EQ(crew.now, milliseconds(4100));
}

TEST(Watchdog, SignsOfLifeWithoutProgressMeanStuck) {
  Crew crew(3);
  crew.idle[2] = true;
  crew.pulses[2].phase = Phase::backward;
  crew.pulses[0].waits_for = 2;
  const auto blame = crew.watch(milliseconds(20'000));
  ASSERT_TRUE(blame);
  EXPECT_EQ(blame->rank, 2);
  EXPECT_EQ(blame->suspicion, Suspicion::stuck);
  EXPECT_EQ(blame->last.phase, Phase::backward);
  EXPECT_LE(crew.now, milliseconds(1200));
}

TEST(Watchdog, WhoWaitsIsNotStuckAndWhoIsWaitedForInTheEndIsBlamed) {
  Crew crew(4);
  crew.pulses[0].waits_for = 1;
  crew.pulses[1].waits_for = 2;
  crew.pulses[3].waits_for = PulseReading::store;
  crew.idle[2] = true;
  const auto blame = crew.watch(milliseconds(20'000));
  ASSERT_TRUE(blame);
  EXPECT_EQ(blame->rank, 2);
}

TEST(Watchdog, ProgressExtendsAWaitUpToItsPatience) {
  Crew crew(2);
  crew.pulses[0].waits_for = 1;
  EXPECT_FALSE(crew.watch(milliseconds(4000)));
  const auto blame = crew.watch(milliseconds(500));
  ASSERT_TRUE(blame);
  EXPECT_EQ(blame->rank, 1);
  EXPECT_EQ(blame->suspicion, Suspicion::slow);
  EXPECT_THAT(describe(*blame), HasSubstr("rank 0 has waited for rank 1"));
}

TEST(Watchdog, ARingOfWaitsNamesNobody) {
  Crew crew(3);
  for (int rank = 0; rank < 3; ++rank) crew.pulses[static_cast<std::size_t>(rank)].waits_for = (rank + 1) % 3;
  const auto blame = crew.watch(milliseconds(20'000));
  ASSERT_TRUE(blame);
  EXPECT_EQ(blame->rank, -1);
  EXPECT_EQ(blame->suspicion, Suspicion::unknown);
  EXPECT_LE(crew.now, milliseconds(1200));
}

TEST(Watchdog, AllWaitForAKeyThatNobodySets) {
  Crew crew(2);
  for (PulseReading& pulse : crew.pulses) pulse.waits_for = PulseReading::store;
  const auto blame = crew.watch(milliseconds(20'000));
  ASSERT_TRUE(blame);
  EXPECT_EQ(blame->rank, -1);
}

TEST(Watchdog, WhoHasEndedIsNotWatched) {
  Crew crew(2);
  crew.silent[1] = true;
  crew.watchdog.ended(1);
  EXPECT_FALSE(crew.watch(milliseconds(20'000)));
}

TEST(Watchdog, AMistakeInTheRulesHidesWhatTheyAreThereFor) {
  struct Blind final : LivenessRules {
    bool looks_at_awaited() const override { return false; }
  } blind;
  struct SideTask final : LivenessRules {
    std::uint64_t progress_of(const Heartbeat& heartbeat) const override { return heartbeat.beats; }
  } side_task;
  struct Fixed final : LivenessRules {
    bool progress_extends_waits() const override { return false; }
  } fixed;
  Crew unseen(2, blind);
  unseen.silent[1] = true;
  unseen.pulses[0].waits_for = 1;
  EXPECT_FALSE(unseen.watch(milliseconds(20'000)));
  Crew stuck(1, side_task);
  stuck.idle[0] = true;
  EXPECT_FALSE(stuck.watch(milliseconds(20'000)));
  Crew slow(2, fixed);
  slow.pulses[0].waits_for = 1;
  EXPECT_TRUE(slow.watch(milliseconds(2000)));
}

TEST(Pulse, CountsTheTaskThatIsWaitedForOnlyMeanwhile) {
  RankPulse pulse;
  pulse.main.beat({.step = 3, .phase = Phase::backward});
  pulse.aside.beat({.step = 2, .phase = Phase::save});
  pulse.aside.beat({.step = 2, .phase = Phase::save});
  EXPECT_EQ(pulse.read().progress, 1U) << "a side task's work is not the main task's";
  pulse.main_follows = true;
  EXPECT_EQ(pulse.read().progress, 3U);
  EXPECT_EQ(pulse.read().phase, Phase::save);
  pulse.main_follows = false;
  EXPECT_EQ(pulse.read().progress, 1U);
}

TEST(Pulse, TheEndOfAWaitIsProgress) {
  Pulse pulse;
  pulse.wait_for(4);
  EXPECT_EQ(pulse.read().waits_for, 4);
  EXPECT_EQ(pulse.read().progress, 0U);
  pulse.stop_waiting();
  EXPECT_EQ(pulse.read().waits_for, PulseReading::nobody);
  EXPECT_EQ(pulse.read().progress, 1U);
}

}  // namespace
}  // namespace firedrill

// The walk over the probes of a run: what it asks for and what it counts.
#include "harness/check/probe_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/check/drill_builder.h"
#include "harness/check/property_expect.h"

namespace firedrill {
namespace {

using testing::ElementsAre;

class ProbeWalk : public testing::Test {
 protected:
  void probe(std::int64_t result) {
    const auto view = static_cast<std::int64_t>(tables_.probes[result].view);
    history_.append({.kind = EventKind::probe, .a = result, .b = view});
  }
  void save() { history_.append({.kind = EventKind::acknowledged}); }

  // The positions that were asked for; `wrong` is the result that is wrong.
  std::vector<std::uint32_t> asked_for(std::int64_t wrong = -1) {
    std::vector<std::uint32_t> asked;
    const Case run(history_, plan_);
    first_wrong_ =
        first_wrong_probe(run, {EventKind::acknowledged}, counts_, [&](std::uint32_t at, const ProbeResult&) {
          asked.push_back(at);
          return run.event(at).a == wrong ? ProbeAnswer::wrong : ProbeAnswer::right;
        });
    return asked;
  }

  Tables tables_;
  History history_{tables_};
  Plan plan_;
  ProbeCounts counts_;
  std::optional<std::uint32_t> first_wrong_;
  std::int64_t die_ = tables_.probes.add({.view = ProbeView::processes_die});
  std::int64_t power_ = tables_.probes.add({.view = ProbeView::power_fails});
  std::int64_t other_ = tables_.probes.add({.view = ProbeView::power_fails, .outcome = ProbeOutcome::error});
};

TEST_F(ProbeWalk, AsksOnceForWhatAViewSaysAgainAndCountsAll) {
  for (const std::int64_t result : {die_, power_, die_, power_, die_, other_, die_, power_}) probe(result);
  EXPECT_THAT(asked_for(), ElementsAre(0, 1, 5, 7));
  EXPECT_THAT(counts_.by_view, ElementsAre(4, 4));
  EXPECT_EQ(first_wrong_, std::nullopt);
}

TEST_F(ProbeWalk, AsksAnewBehindATurn) {
  probe(die_);
  probe(power_);
  probe(die_);
  save();
  save();
  probe(die_);
  probe(power_);
  probe(power_);
  EXPECT_THAT(asked_for(), ElementsAre(0, 1, 5, 6));
  EXPECT_THAT(counts_.by_view, ElementsAre(3, 3));
}

TEST_F(ProbeWalk, EndsAtTheFirstWrongOneAndCountsIt) {
  for (const std::int64_t result : {die_, power_, die_, other_, die_}) probe(result);
  EXPECT_THAT(asked_for(other_), ElementsAre(0, 1, 3));
  EXPECT_EQ(first_wrong_, 3U);
  EXPECT_THAT(counts_.by_view, ElementsAre(2, 2));
}

// The disk says the same before and after the acknowledgement, and only then that is too little.
TEST(RepeatedProbes, AreHeldAgainstWhatWasAcknowledgedSince) {
  DrillBuilder drill{2, 4, 4};
  drill.start_fresh();
  drill.train(1);
  const std::int64_t nothing = drill.tables.probes.add({.view = ProbeView::processes_die});
  drill.add(EventKind::probe, {.a = nothing});
  EXPECT_EQ(drill.judge_with(judge_acknowledged_is_durable).outcome, Outcome::pass);
  drill.add(EventKind::acknowledged, {.rank = 0, .step = 1, .a = 1, .name = "1-1-1"});
  drill.add(EventKind::probe, {.a = nothing});
  EXPECT_EQ(drill.judge_with(judge_acknowledged_is_durable).outcome, Outcome::fail);
}

}  // namespace
}  // namespace firedrill

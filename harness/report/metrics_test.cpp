#include "harness/report/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firedrill {
namespace {

using testing::HasSubstr;

// Two ranks, a save after step 2, rank 1 dies in step 3, all of it starts again and ends after step 4.
class MetricsOfARun : public testing::Test {
 protected:
  MetricsOfARun() {
    plan_.job.model.sequence = 16;
    plan_.layout.dp = 2;
    add({.kind = EventKind::attempt_started, .attempt = 1, .a = 2, .b = -1}, 0);
    both({.kind = EventKind::found, .attempt = 1}, 10);
    both({.kind = EventKind::started_fresh, .attempt = 1}, 20);
    step(1, 1, 120);
    step(1, 2, 220);
    both({.kind = EventKind::save_started, .phase = Phase::save, .attempt = 1, .step = 2}, 221);
    both({.kind = EventKind::acknowledged, .phase = Phase::validate, .attempt = 1, .step = 2}, 250);
    step(1, 3, 350);
    add({.kind = EventKind::fault_fired, .rank = 1, .attempt = 1, .step = 4}, 400);
    add({.kind = EventKind::rank_ended, .rank = 1, .attempt = 1, .a = 2}, 400);
    add({.kind = EventKind::attempt_ended, .attempt = 1, .a = 1, .b = 1}, 430);
    add({.kind = EventKind::attempt_started, .attempt = 2, .a = 2, .b = 2}, 440);
    both({.kind = EventKind::found, .attempt = 2}, 470);
    both({.kind = EventKind::restored, .attempt = 2, .step = 2}, 475);
    step(2, 3, 575);
    step(2, 4, 675);
    add({.kind = EventKind::attempt_ended, .attempt = 2, .c = 2}, 680);
    add({.kind = EventKind::run_ended, .a = 1, .b = 2}, 680);
  }

  void add(Event event, std::int64_t time) {
    event.time = Time(time);
    history_.append(event);
  }
  void both(Event event, std::int64_t time) {
    for (std::int16_t rank = 0; rank < 2; ++rank) {
      event.rank = rank;
      add(event, time - 1 + rank);
    }
  }
  void step(int attempt, std::int64_t number, std::int64_t time) {
    both({.kind = EventKind::sample, .attempt = attempt, .step = number, .b = 7}, time - 50);
    both({.kind = EventKind::step_done, .attempt = attempt, .step = number}, time);
  }
  Metrics metrics() const { return metrics_of(history_, plan_, {}); }

  Tables tables_;
  History history_{tables_};
  Plan plan_;
};

TEST_F(MetricsOfARun, TheWallTimeIsSplitByCauseWithoutRemainder) {
  const Metrics found = metrics();
  EXPECT_EQ(found.wall, 680);
  EXPECT_EQ(found.start, 20);
  EXPECT_EQ(found.productive, 400);  // steps 1 to 4, each once
  EXPECT_EQ(found.checkpoint, 30);
  EXPECT_EQ(found.lost.redo, 150);  // 50 of step 4 before the kill, and step 3 again
  EXPECT_EQ(found.lost.detect, 30);
  EXPECT_EQ(found.lost.restart, 40);
  EXPECT_EQ(found.lost.restore, 5);
  EXPECT_EQ(found.other, 5);
  EXPECT_EQ(found.start + found.productive + found.checkpoint + found.lost.total() + found.other, found.wall);
  EXPECT_DOUBLE_EQ(found.ettr, 400.0 / 680.0);
}

TEST_F(MetricsOfARun, ASampleCountsOnceHoweverOftenItWasConsumed) {
  const Metrics found = metrics();
  EXPECT_EQ(found.steps, 4);
  EXPECT_EQ(found.steps_redone, 1);
  EXPECT_EQ(found.tokens, 4 * 16);
}

TEST_F(MetricsOfARun, TheEstimateIsThatOfTheRunsOwnFailuresAndSaves) {
  const Metrics found = metrics();
  ASSERT_TRUE(found.estimate);
  EXPECT_EQ(found.estimate->nodes, 2);
  EXPECT_EQ(found.estimate->restart, 75);
  EXPECT_EQ(found.estimate->interval, 550);
  EXPECT_EQ(found.estimate->save, 30);
  EXPECT_DOUBLE_EQ(found.estimate->ettr, (1 - (75 + 275) / 680.0) / (1 + 30 / 550.0));
}

TEST_F(MetricsOfARun, AnAsynchronousSaveCostsNoTimeAndCountsForTheIntervalOfTheEstimate) {
  both({.kind = EventKind::save_dispatched, .attempt = 1, .step = 2}, 221);
  const Metrics found = metrics();
  EXPECT_EQ(found.checkpoint, 0);
  EXPECT_EQ(found.saves, 0);
  EXPECT_EQ(found.saves_beside, 1);
  ASSERT_TRUE(found.estimate);
  EXPECT_EQ(found.estimate->save, 0);
  EXPECT_EQ(found.estimate->interval, found.productive + found.lost.redo);
  EXPECT_GT(found.estimate->ettr, 0);
}

TEST_F(MetricsOfARun, AnAsynchronousSaveThatWasNotAcknowledgedCountsForNothing) {
  both({.kind = EventKind::save_dispatched, .attempt = 2, .step = 4}, 676);
  both({.kind = EventKind::save_failed, .phase = Phase::validate, .attempt = 2, .step = 4, .b = 1}, 679);
  EXPECT_EQ(metrics().saves, 1);
  EXPECT_EQ(metrics().saves_beside, 0);
}

TEST_F(MetricsOfARun, AHungRankIsLostFromItsFaultOnNotFromWhenItIsNoticed) {
  add({.kind = EventKind::attempt_started, .attempt = 3, .a = 2}, 680);
  both({.kind = EventKind::found, .attempt = 3}, 690);
  both({.kind = EventKind::restored, .attempt = 3, .step = 4}, 700);
  add({.kind = EventKind::fault_fired, .rank = 1, .attempt = 3, .step = 5}, 750);
  add({.kind = EventKind::suspected, .rank = 0, .attempt = 3, .step = 5, .a = 1}, 2750);
  add({.kind = EventKind::attempt_ended, .attempt = 3, .a = 2}, 2760);
  EXPECT_EQ(metrics().lost.detect, 30 + 2010);
}

TEST_F(MetricsOfARun, OpenMetricsNamesEachPartAndEnds) {
  const std::string text = to_open_metrics(metrics(), {.scenario = "a \"b\"", .world = "sim", .layout = "dp=2"});
  EXPECT_THAT(text, HasSubstr("# TYPE firedrill_step_seconds summary\n"));
  EXPECT_THAT(text, HasSubstr("firedrill_time_seconds{scenario=\"a \\\"b\\\"\",world=\"sim\",layout=\"dp=2\","
                              "part=\"redo\"} 1.5e-07\n"));
  EXPECT_TRUE(text.ends_with("# EOF\n"));
}

TEST(Metrics, OfNoHistoryAreEmpty) {
  Tables tables;
  const Metrics found = metrics_of(History(tables), Plan{}, {});
  EXPECT_EQ(found.wall, 0);
  EXPECT_EQ(to_text(found), "");
}

}  // namespace
}  // namespace firedrill

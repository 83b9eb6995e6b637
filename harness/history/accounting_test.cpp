#include "harness/history/accounting.h"

#include <gtest/gtest.h>

namespace firedrill {
namespace {

class AccountingOfAHistory : public testing::Test {
 protected:
  void add(EventKind kind, int rank, std::int64_t step, const char* name, const Event& rest) {
    Event event = rest;
    event.kind = kind;
    event.rank = static_cast<std::int16_t>(rank);
    event.attempt = 1;
    event.step = step;
    event.name = tables_.names.intern(name);
    history_.append(event);
  }
  void spent(int rank, std::int64_t step, const char* name, std::int64_t time, std::int64_t waiting) {
    add(EventKind::time_spent, rank, step, name, {.a = time, .b = waiting});
  }
  Accounting account() const {
    return accounting_of(history_,
                         [](int, int rank) { return PipelinePlace{.pipeline = rank / 2, .first = rank % 2 == 0}; });
  }

  Tables tables_;
  History history_{tables_};
};

TEST_F(AccountingOfAHistory, IsEmptyWithoutEvents) { EXPECT_TRUE(account().empty()); }

TEST_F(AccountingOfAHistory, NamesTheRankAndStepOfTheMaximumAndGivesPercentiles) {
  for (int step = 1; step <= 50; ++step) {
    spent(0, step, "forward", step, 0);
    spent(1, step, "forward", 50 + step, 10);
  }
  spent(1, 7, "forward", 1000, 0);  // a second task of the same rank in the same step
  const Accounting result = account();
  ASSERT_EQ(result.phases.size(), 1U);
  const Spread& time = result.phases[0].time;
  EXPECT_EQ(time.samples, 100);
  EXPECT_EQ(time.p50, 50);
  EXPECT_EQ(time.p95, 96);
  EXPECT_EQ(time.max, 1057);
  EXPECT_EQ(time.max_rank, 1);
  EXPECT_EQ(time.max_step, 7);
  EXPECT_EQ(result.phases[0].waiting.max, 10);
  EXPECT_EQ(result.slowest_rank, 1);
}

TEST_F(AccountingOfAHistory, KeepsPhasesAndGroupsApartAndSharesOutIdleTimeByPhases) {
  spent(0, 1, "backward", 60, 15);
  spent(0, 1, "other", 40, 10);
  spent(0, 1, "dp", 30, 25);
  const Accounting result = account();
  ASSERT_EQ(result.phases.size(), 2U);
  EXPECT_EQ(result.phases[1].what, "other");
  ASSERT_EQ(result.groups.size(), 1U);
  EXPECT_EQ(result.groups[0].what, "dp");
  ASSERT_EQ(result.ranks.size(), 1U);
  EXPECT_EQ(result.ranks[0].time, 100);
  EXPECT_DOUBLE_EQ(result.ranks[0].share(), 0.25);
}

TEST_F(AccountingOfAHistory, AddsBytesAndCallsByGroupAndOperation) {
  const NameId operation = tables_.names.intern("all_reduce");
  for (const int rank : {0, 1}) {
    add(EventKind::exchanged, rank, 1, "dp", {.a = 100 * (rank + 1), .b = 5, .c = 2, .detail = operation});
    add(EventKind::exchanged, rank, 1, "tp", {.a = 7, .b = 5, .c = 1, .detail = operation});
  }
  const Accounting result = account();
  ASSERT_EQ(result.exchanges.size(), 2U);
  EXPECT_EQ(result.exchanges[0].group, "dp");
  EXPECT_EQ(result.exchanges[0].bytes, 300);
  EXPECT_EQ(result.exchanges[0].calls, 4);
  EXPECT_EQ(result.exchanges[0].bytes_of_rank.max, 200);
  EXPECT_EQ(result.exchanges[0].bytes_of_rank.max_rank, 1);
}

TEST_F(AccountingOfAHistory, NamesTheRankThatHeldMost) {
  EXPECT_FALSE(account().memory);
  add(EventKind::memory_used, 0, 1, "", {.a = 100, .b = 80});
  add(EventKind::memory_used, 1, 1, "", {.a = 300, .b = 90});
  add(EventKind::memory_used, 1, 2, "", {.a = 200, .b = 90});
  const Accounting result = account();
  ASSERT_TRUE(result.memory);
  EXPECT_EQ(result.memory->high_water.max, 300);
  EXPECT_EQ(result.memory->high_water.max_rank, 1);
  EXPECT_EQ(result.memory->high_water.max_step, 1);
  EXPECT_EQ(result.memory->high_water.p50, 200);
  EXPECT_EQ(result.memory->persistent.max, 90);
}

TEST_F(AccountingOfAHistory, TheBubbleIsTheShareOfTheFirstStagesTimeInWhichItsRanksAreIdle) {
  spent(0, 1, "pipeline", 100, 20);  // 80 busy
  spent(1, 1, "pipeline", 70, 10);   // 60 busy
  const Accounting result = account();
  ASSERT_TRUE(result.bubble);
  EXPECT_EQ(result.bubble->samples, 1);
  EXPECT_DOUBLE_EQ(result.bubble->max, 0.3);
}

}  // namespace
}  // namespace firedrill

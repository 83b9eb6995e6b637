#include <gtest/gtest.h>

#include "faults/fake_world.h"
#include "faults/injector.h"

namespace firedrill {
namespace {

// One rank whose two tasks are at different places of their work.
struct TwoTasks {
  TwoTasks(int times, int fired_before)
      : plan{FaultSpec{.kind = FaultKind::io_error, .at = {.rank = 2, .op = SeamOp::file}, .times = times}},
        counts(plan.size(), {fired_before}),
        main(plan, {fired_before}, main_position, world, &counts),
        aside(plan, {fired_before}, aside_position, world, &counts) {}

  static bool fails(Injector& injector) {
    return !injector.around({.op = SeamOp::file, .file_op = FileOp::write}, [] { return Status(); });
  }

  std::vector<FaultSpec> plan;
  FakeWorld world;
  Position main_position{.attempt = 1, .rank = 2, .step = 5, .phase = Phase::input};
  Position aside_position{.attempt = 1, .rank = 2, .step = 4, .phase = Phase::save};
  FireCounts counts;
  Injector main;
  Injector aside;
};

TEST(FireCounts, AFaultThatBothTasksOfARankCanHitFiresAsOftenAsItsTimesSay) {
  TwoTasks once(1, 0);
  EXPECT_TRUE(TwoTasks::fails(once.aside));
  EXPECT_FALSE(TwoTasks::fails(once.main)) << "the other task has had it";
  EXPECT_EQ(once.world.journaled, std::vector<std::string>{"0 at 1/4/save"});

  TwoTasks thrice(3, 1);  // once in an earlier attempt
  EXPECT_TRUE(TwoTasks::fails(thrice.main));
  EXPECT_TRUE(TwoTasks::fails(thrice.aside));
  EXPECT_FALSE(TwoTasks::fails(thrice.aside));
  EXPECT_FALSE(TwoTasks::fails(thrice.main));
}

TEST(FireCounts, AStickyFaultStaysForBoth) {
  TwoTasks sticky(0, 0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(TwoTasks::fails(sticky.main));
    EXPECT_TRUE(TwoTasks::fails(sticky.aside));
  }
}

}  // namespace
}  // namespace firedrill

// What the properties say of saves that are published beside training.
#include "harness/check/property_expect.h"

#include "harness/check/all.h"

namespace firedrill {
namespace {

// Saves of step 2 and 4, each dispatched and published while the next step is trained; then all ranks finish.
class DispatchedSaves : public testing::Test {
 protected:
  DispatchedSaves() {
    drill_.start_fresh();
    drill_.train(1);
    drill_.train(2);
    dispatch(2);
    drill_.train(3);
    drill_.save(2);
    drill_.train(4);
    dispatch(4);
    drill_.save(4);
    for (int rank = 0; rank < 2; ++rank) drill_.add(EventKind::rank_ended, {.rank = rank, .step = 4, .a = 0});
    expect_pass(drill_, judge_errors_reach_the_job);
    expect_pass(drill_, judge_resume_equals_golden);
  }
  void dispatch(int step) {
    for (int rank = 0; rank < 2; ++rank) {
      drill_.add(EventKind::save_dispatched, {.rank = rank, .step = step, .digest = drill_.state(step, rank)});
    }
  }
  void forget_acknowledgement(int step, int rank) {
    std::erase_if(drill_.events, [&](const Event& event) {
      return event.kind == EventKind::acknowledged && event.step == step && event.rank == rank;
    });
  }
  // In the place of an event of rank 1, its report that the publish of its step failed as a whole.
  void fail_instead_of(Event& event) {
    event.kind = EventKind::save_failed;
    event.b = 1;
    event.name = drill_.name("disk full");
  }

  DrillBuilder drill_{2, 4};
};

TEST_F(DispatchedSaves, FailWhenTheNextOneStartsWithoutTheOutcomeOfTheOneBefore) {
  forget_acknowledgement(2, 1);
  expect_fail(drill_, judge_errors_reach_the_job,
              "step 2, rank 1, attempt 1: dispatches a save and dispatches another");
}

TEST_F(DispatchedSaves, FailWhenARankFinishesWithoutTheOutcomeOfTheLast) {
  forget_acknowledgement(4, 0);
  expect_fail(drill_, judge_errors_reach_the_job, "step 4, rank 0, attempt 1: dispatches a save and finishes before");
}

TEST_F(DispatchedSaves, MayFailInTheMiddleIfThatIsReportedButNotAtTheEnd) {
  // Nothing of its try may succeed then, so the other traces of success go too.
  for (const int step : {2, 4}) {
    std::erase_if(drill_.events, [&](const Event& event) {
      return event.step == step && (event.kind == EventKind::committed || event.kind == EventKind::validated);
    });
    for (int rank = 0; rank < 2; ++rank) fail_instead_of(drill_.nth(EventKind::acknowledged, 0, rank));
    if (step == 2) expect_pass(drill_, judge_errors_reach_the_job);
  }
  expect_fail(drill_, judge_errors_reach_the_job, "finishes although its last save failed");
}

TEST_F(DispatchedSaves, AreNotAskedForOfARankThatDied) {
  forget_acknowledgement(4, 1);
  drill_.nth(EventKind::rank_ended, 0, 1).a = 2;
  expect_pass(drill_, judge_errors_reach_the_job);
}

TEST_F(DispatchedSaves, FailWhenTheSnapshotIsNotTheGoldensState) {
  drill_.nth(EventKind::save_dispatched, 1, 0).digest = drill_.wrong_state(4, 0, "weight.1");
  expect_fail(drill_, judge_resume_equals_golden, "tensor weight.1 after step 4");
}

}  // namespace
}  // namespace firedrill

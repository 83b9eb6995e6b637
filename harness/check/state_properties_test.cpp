// The properties that compare values: resume_equals_golden, ranks_restore_the_same, samples_exactly_once.
#include "harness/check/property_expect.h"

namespace firedrill {
namespace {

class ResumeEqualsGolden : public PropertyTest {
 protected:
  ResumeEqualsGolden() : PropertyTest(judge_resume_equals_golden) {}
};

TEST_F(ResumeEqualsGolden, FailsWithTheFirstWrongTensorAndStep) {
  drill_.nth(EventKind::step_done, 11).digest = drill_.wrong_state(6, 1, "weight.0");
  drill_.nth(EventKind::step_done, 12).digest = drill_.wrong_state(7, 0, "weight.0");
  expect_fail("first difference: tensor weight.0 after step 6");
  expect_fail("step_done at step 6, rank 1, attempt 2");
}

TEST_F(ResumeEqualsGolden, FailsWhenARankRestoredAnotherRanksRandomState) {
  drill_.nth(EventKind::restored, 1).digest = drill_.wrong_state(4, 1, "random.lane.1");
  expect_fail("tensor random.lane.1 after step 4");
  expect_fail("restored at step 4, rank 1, attempt 2");
}

TEST_F(ResumeEqualsGolden, FailsWhenTheStateOfAnotherStepIsAcknowledged) {
  drill_.nth(EventKind::acknowledged, 0).digest = drill_.state(3, 0);
  expect_fail("acknowledged at step 2, rank 0, attempt 1");
}

TEST_F(ResumeEqualsGolden, FailsWhenNoRankHoldsATensorOfTheGolden) {
  const Digest last = digest_of(std::string_view("golden with more"));
  auto tensors = drill_.tensors_of(8, 0, 1);
  tensors.push_back({"optimizer.step", last});
  drill_.tables.states.describe(last, tensors);
  drill_.nth(EventKind::golden, 7).digest = last;
  expect_fail("tensor optimizer.step after step 8 is held by no rank");
}

TEST_F(ResumeEqualsGolden, FailsWhenATensorIsUnknownToTheGolden) {
  const Digest state = digest_of(std::string_view("state with more"));
  auto tensors = drill_.tensors_of(8, 0, 0);
  tensors.push_back({"a.surplus", state});
  drill_.tables.states.describe(state, tensors);
  drill_.nth(EventKind::step_done, 14).digest = state;
  expect_fail("tensor a.surplus after step 8 is not in the other");
}

TEST_F(ResumeEqualsGolden, IsUnknownWithoutAGolden) {
  std::erase_if(drill_.events, [](const Event& event) { return event.kind == EventKind::golden && event.step == 3; });
  expect_unknown("step_done at step 3, rank 0, attempt 1: the history holds no golden");
}

TEST_F(ResumeEqualsGolden, IsUnknownWhenAStateWasNeverDescribed) {
  drill_.nth(EventKind::step_done, 0).digest = digest_of(std::string_view("never described"));
  expect_unknown("its state was never described");
}

TEST_F(ResumeEqualsGolden, JudgesWhatIsThereWhenTheRunGaveUp) {
  std::erase_if(drill_.events, [](const Event& event) { return event.attempt == 2; });
  expect_pass_still();
}

class RanksRestoreTheSame : public PropertyTest {
 protected:
  RanksRestoreTheSame() : PropertyTest(judge_ranks_restore_the_same) {}
};

TEST_F(RanksRestoreTheSame, FailsWhenTwoRanksChooseDifferently) {
  Event& event = drill_.nth(EventKind::found, 3);
  event.a = 2;
  event.name = drill_.name("2-1-1");
  expect_fail("attempt 2: rank 0 chooses 4-1-1, rank 1 chooses 2-1-1");
}

TEST_F(RanksRestoreTheSame, FailsWhenOneRankFoundNothing) {
  Event& event = drill_.nth(EventKind::found, 3);
  event.a = -1;
  event.name = 0;
  expect_fail("rank 1 chooses nothing");
}

TEST_F(RanksRestoreTheSame, FailsWhenTwoRanksRestoreDifferentCheckpoints) {
  Event& event = drill_.nth(EventKind::restored, 1);
  event.c = 2;
  event.name = drill_.name("4-1-2");
  expect_fail("rank 0 restores 4-1-1, rank 1 restores 4-1-2");
}

TEST_F(RanksRestoreTheSame, FailsWhenReplicasDifferAndNamesTheTensor) {
  drill_.nth(EventKind::restored, 1).digest = drill_.wrong_state(4, 1, "weight.1");
  expect_fail("ranks 0 and 1 restore 4-1-1 with different values: tensor weight.1");
}

TEST_F(RanksRestoreTheSame, LeavesWhatOneRankAloneHoldsToOthers) {
  drill_.nth(EventKind::restored, 1).digest = drill_.wrong_state(4, 1, "random.lane.1");
  expect_pass_still();
}

TEST_F(RanksRestoreTheSame, FailsWhenOneRankStartsFreshAndAnotherRestores) {
  drill_.add(EventKind::started_fresh, {.attempt = 2, .rank = 1});
  expect_fail("rank 1 starts fresh, rank 0 restores 4-1-1");
}

TEST_F(RanksRestoreTheSame, ComparesASecondDecisionWithASecondOne) {
  for (int rank = 0; rank < 2; ++rank) {
    drill_.add(EventKind::found, {.attempt = 2, .rank = rank, .a = 2, .b = 1, .c = 1, .name = "2-1-1"});
  }
  expect_pass_still();
  drill_.nth(EventKind::found, 5).a = 1;
  expect_fail("attempt 2: rank 0 chooses 2-1-1");
}

TEST_F(RanksRestoreTheSame, IsUnknownWhenAStateWasNeverDescribed) {
  drill_.nth(EventKind::restored, 0).digest = digest_of(std::string_view("never described"));
  expect_unknown("step 4, rank 0, attempt 2: the restored state was never described");
}

class SamplesExactlyOnce : public PropertyTest {
 protected:
  SamplesExactlyOnce() : PropertyTest(judge_samples_exactly_once) {}
  void forget_golden() {
    std::erase_if(drill_.events, [](const Event& event) { return event.kind == EventKind::golden_sample; });
  }
  // The sample event of a step, rank and attempt.
  Event& sample(std::int64_t step, int rank, int attempt) {
    for (Event& event : drill_.events) {
      const bool fits = event.kind == EventKind::sample && event.step == step && event.rank == rank;
      if (fits && event.attempt == attempt) return event;
    }
    FD_CHECK(false, "no such sample");
    return drill_.events.front();
  }
};

TEST_F(SamplesExactlyOnce, FailsWhenASampleIsLeftOut) {
  sample(3, 1, 1).b = 40;
  expect_fail("step 3: sample 5 of epoch 0 in lane 1 is not consumed");
}

TEST_F(SamplesExactlyOnce, FailsWhenASampleIsConsumedTwiceInAStep) {
  drill_.events.push_back(sample(3, 0, 1));
  expect_fail("step 3: sample 4 of epoch 0 in lane 0 is consumed, and should not be (or not twice)");
}

TEST_F(SamplesExactlyOnce, FailsWhenTheEpochIsForgottenOnResume) {
  for (const int rank : {0, 1}) sample(5, rank, 2).a = 0;
  expect_fail("step 5: sample 0 of epoch 0 in lane 0 is consumed");
}

TEST_F(SamplesExactlyOnce, FailsWhenAnotherLaneConsumesIt) {
  sample(2, 0, 1).c = 1;
  expect_fail("step 2: sample 2 of epoch 0");
}

TEST_F(SamplesExactlyOnce, DoesNotCountWhatAnAttemptConsumedInVain) {
  sample(5, 1, 1).b = 77;
  expect_pass_still();
}

TEST_F(SamplesExactlyOnce, CountsTheLastAttemptThatCompletedAStep) {
  sample(5, 1, 2).b = 77;
  expect_fail("step 5");
}

TEST_F(SamplesExactlyOnce, SeesARepetitionWithoutAGolden) {
  forget_golden();
  expect_pass_still();
  sample(3, 1, 1).b = 0;
  expect_fail("step 3: sample 0 of epoch 0 in lane 1, which step 1 consumed already");
}

TEST_F(SamplesExactlyOnce, SeesAnIncompleteEpochWithoutAGolden) {
  forget_golden();
  std::erase_if(drill_.events,
                [](const Event& event) { return event.kind == EventKind::sample && event.a == 0 && event.b == 5; });
  expect_fail("epoch 0 left out sample 5");
  drill_.plan.job.data.last_batch = LastBatch::drop;
  expect_pass_still();
}

TEST_F(SamplesExactlyOnce, LetsPaddingRepeatInTheLastBatchOfAnEpochOnly) {
  forget_golden();
  drill_.add(EventKind::sample, {.attempt = 1, .rank = 0, .step = 4, .a = 0, .b = 1, .c = 0});
  expect_fail("step 4: sample 1 of epoch 0 in lane 0, which step 1 consumed already");
  drill_.plan.job.data.last_batch = LastBatch::pad;
  expect_pass_still();
  drill_.add(EventKind::sample, {.attempt = 1, .rank = 0, .step = 3, .a = 0, .b = 2, .c = 0});
  expect_fail("step 3: sample 2 of epoch 0");
}

}  // namespace
}  // namespace firedrill

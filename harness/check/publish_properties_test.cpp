// The properties about what lies on the disk: partial_never_discoverable, acknowledged_is_durable, one_provenance,
// validated_is_kept.
#include "harness/check/property_expect.h"

namespace firedrill {
namespace {

class ProbeTest : public PropertyTest {
 protected:
  using PropertyTest::PropertyTest;
  // Changes what the last probe of a view says.
  template <class Change>
  void change_last(ProbeView view, Change change) {
    for (std::size_t i = drill_.events.size(); i-- > 0;) {
      Event& event = drill_.events[i];
      if (event.kind != EventKind::probe || event.b != static_cast<std::int64_t>(view)) continue;
      ProbeResult result = drill_.tables.probes[event.a];
      change(result);
      event.a = drill_.tables.probes.add(std::move(result));
      return;
    }
  }
};

class PartialNeverDiscoverable : public ProbeTest {
 protected:
  PartialNeverDiscoverable() : ProbeTest(judge_partial_never_discoverable) {}
};

TEST_F(PartialNeverDiscoverable, CountsTheProbesOfEachView) {
  const Verdict verdict = drill_.judge_with(property_);
  EXPECT_EQ(verdict.evidence, fmt::format("processes_die: {0}, power_fails: {0}", verdict.checked / 2));
}

TEST_F(PartialNeverDiscoverable, FailsWhenAFoundCheckpointIsNotWhole) {
  change_last(ProbeView::power_fails, [](ProbeResult& result) {
    result.complete = false;
    result.reason = "shard model-1 is missing";
  });
  expect_fail("view power_fails: checkpoint 8-2-1 is found: it is not whole: shard model-1 is missing");
}

TEST_F(PartialNeverDiscoverable, FailsWhenAWholeCheckpointHoldsAnotherStepsState) {
  change_last(ProbeView::processes_die, [&](ProbeResult& result) { result.state = drill_.whole_state(6); });
  expect_fail("view processes_die: checkpoint 8-2-1 is found: tensor random.lane.0 digest");
}

TEST_F(PartialNeverDiscoverable, FailsWhenATensorIsMissingFromIt) {
  change_last(ProbeView::processes_die,
              [&](ProbeResult& result) { result.state = drill_.tables.states.describe(drill_.tensors_of(8, 0, 0)); });
  expect_fail("tensor random.lane.1 is in the other only");
}

TEST_F(PartialNeverDiscoverable, FailsWhenTheJobHasNoSuchStep) {
  change_last(ProbeView::processes_die, [&](ProbeResult& result) { result.found.step = 9; });
  expect_fail("checkpoint 9-2-1 is found: the job has no such step");
}

TEST_F(PartialNeverDiscoverable, FailsWhenDiscoveryFailsForNoReason) {
  change_last(ProbeView::processes_die, [](ProbeResult& result) {
    result.outcome = ProbeOutcome::error;
    result.error = "manifest cannot be read";
  });
  expect_fail("discovery fails although nothing was damaged: manifest cannot be read");
}

TEST_F(PartialNeverDiscoverable, PassesWhenNothingIsFound) {
  change_last(ProbeView::processes_die, [](ProbeResult& result) { result.outcome = ProbeOutcome::nothing; });
  expect_pass_still();
}

TEST_F(PartialNeverDiscoverable, IsUnknownWithoutAGolden) {
  std::erase_if(drill_.events, [](const Event& event) { return event.kind == EventKind::golden; });
  expect_unknown("the history holds no golden of that step");
}

TEST_F(PartialNeverDiscoverable, IsUnknownWhenTheAuditNamedNoTensors) {
  change_last(ProbeView::processes_die, [](ProbeResult& result) { result.state = no_state; });
  expect_unknown("its tensors were not described");
}

class AcknowledgedIsDurable : public ProbeTest {
 protected:
  AcknowledgedIsDurable() : ProbeTest(judge_acknowledged_is_durable) {}
};

TEST_F(AcknowledgedIsDurable, FailsWhenAPowerLossTakesBackAnAcknowledgedSave) {
  drill_.probe(drill_.right_probe(ProbeView::power_fails));
  change_last(ProbeView::power_fails, [](ProbeResult& result) { result.found = {6, 2, 1}; });
  expect_fail("view power_fails: step 8 was acknowledged, and discovery finds 6-2-1");
}

TEST_F(AcknowledgedIsDurable, FailsWhenNothingIsFoundBehindAnAcknowledgement) {
  change_last(ProbeView::power_fails, [](ProbeResult& result) { result.outcome = ProbeOutcome::nothing; });
  expect_fail("was acknowledged, and discovery finds nothing");
}

TEST_F(AcknowledgedIsDurable, FailsWhenDiscoveryFails) {
  change_last(ProbeView::processes_die, [](ProbeResult& result) {
    result.outcome = ProbeOutcome::error;
    result.error = "damaged";
  });
  expect_fail("discovery fails: damaged");
}

TEST_F(AcknowledgedIsDurable, DoesNotAskBeforeTheAcknowledgement) {
  // Probes around the first commit find nothing or the new checkpoint; both are right there.
  int changed = 0;
  for (Event& event : drill_.events) {
    if (event.kind == EventKind::acknowledged) break;
    if (event.kind != EventKind::probe) continue;
    event.a = drill_.tables.probes.add({.view = static_cast<ProbeView>(event.b)});
    ++changed;
  }
  EXPECT_GT(changed, 0);
  expect_pass_still();
}

TEST_F(AcknowledgedIsDurable, FailsWhenAnAttemptResumesFromAnOlderStep) {
  for (const int n : {2, 3}) drill_.nth(EventKind::found, n).a = 2;
  expect_fail("rank 0, attempt 2 resumes from step 2 although step 4 was acknowledged");
}

TEST_F(AcknowledgedIsDurable, FailsWhenAnAttemptResumesBelowItsFloor) {
  drill_.nth(EventKind::attempt_started, 1).b = 6;
  expect_fail("resumes from step 4 although step 6 was acknowledged");
}

TEST_F(AcknowledgedIsDurable, ExcusesTheAttemptBehindTheOneThatRejectedWhatWasDamaged) {
  // Attempt 2 dies after its rejection, so attempt 3 finds the mark and no damage of its own.
  drill_.plan.faults = {FaultSpec{.kind = FaultKind::bit_flip_at_rest}};
  drill_.add(EventKind::fault_fired, {.rank = 1, .detail = "shards/8-2-1/model-1"});
  const auto rejection = drill_.events.size();
  drill_.add(EventKind::rejected, {.rank = 0, .a = 8, .b = 2, .c = 1, .name = "8-2-1"});
  drill_.start_from({.step = 6, .attempt = 2, .trial = 1}, 8);
  expect_pass_still();
  drill_.events.erase(drill_.events.begin() + static_cast<std::ptrdiff_t>(rejection));
  expect_fail("attempt 3 resumes from step 6 although step 8 was acknowledged");
}

TEST_F(AcknowledgedIsDurable, ExcusesTheAttemptThatMarksAgainWhatAnotherCouldNotRead) {
  // Attempt 3 cannot read 8-2-1 because of a fault, marks it, and ends before it can say so; attempt 4 finds the mark.
  drill_.plan.faults = {FaultSpec{.kind = FaultKind::unreadable_shard}};
  drill_.start(8);
  drill_.add(EventKind::fault_fired, {.rank = 1, .detail = "shards/8-2-1/model-1"});
  const auto report = drill_.events.size();
  drill_.add(EventKind::damage, {.rank = 0, .a = 8, .b = 2, .c = 1, .name = "8-2-1"});
  drill_.start(8);
  drill_.add(EventKind::rejected, {.rank = 0, .a = 8, .b = 2, .c = 1, .name = "8-2-1"});
  drill_.add(EventKind::found, {.rank = 0, .a = 6, .b = 2, .c = 1, .name = "6-2-1"});
  expect_pass_still();
  drill_.events.erase(drill_.events.begin() + static_cast<std::ptrdiff_t>(report));
  expect_fail("attempt 4 resumes from step 6 although step 8 was acknowledged");
}

TEST_F(AcknowledgedIsDurable, FailsWhenDamageThatNothingExplainsFollowsDamageThatAFaultExplains) {
  // Attempt 3 cannot read 8-2-1 because of a fault and dies; attempt 4, whom no fault hits, says that it cannot either.
  drill_.plan.faults = {FaultSpec{.kind = FaultKind::unreadable_shard}};
  drill_.start(8);
  drill_.add(EventKind::fault_fired, {.rank = 1, .detail = "shards/8-2-1/model-1"});
  drill_.add(EventKind::damage, {.rank = 0, .a = 8, .b = 2, .c = 1, .name = "8-2-1"});
  drill_.start(8);
  drill_.add(EventKind::damage, {.rank = 0, .a = 8, .b = 2, .c = 1, .name = "8-2-1"});
  drill_.add(EventKind::rejected, {.rank = 0, .a = 8, .b = 2, .c = 1, .name = "8-2-1"});
  drill_.add(EventKind::found, {.rank = 0, .a = 6, .b = 2, .c = 1, .name = "6-2-1"});
  expect_fail("attempt 4 resumes from step 6 although step 8 was acknowledged");
  for (Event& event : drill_.events) {
    if (event.kind == EventKind::fault_fired) event.attempt = 4;  // it is attempt 4 that a fault hits
  }
  expect_pass_still();
}

TEST_F(AcknowledgedIsDurable, HoldsTheRunToALoweredFloorOnly) {
  drill_.add(EventKind::floor_lowered, {.a = 8, .b = 6, .name = "8-2-1"});
  drill_.probe({.view = ProbeView::power_fails, .outcome = ProbeOutcome::found, .found = {6, 2, 1}});
  expect_pass_still();
  drill_.probe({.view = ProbeView::power_fails, .outcome = ProbeOutcome::found, .found = {4, 1, 1}});
  expect_fail("step 6 was acknowledged, and discovery finds 4-1-1");
}

class OneProvenance : public ProbeTest {
 protected:
  OneProvenance() : ProbeTest(judge_one_provenance) {}
};

TEST_F(OneProvenance, FailsWhenTheAuditSeesMixedShards) {
  change_last(ProbeView::power_fails, [](ProbeResult& result) {
    result.provenance_coherent = false;
    result.reason = "shard model-1 is of try 2";
  });
  expect_fail(
      "the parts of checkpoint 8-2-1 are not of one run, job, step, attempt and try: shard model-1 is of try 2");
}

TEST_F(OneProvenance, FailsWhenACommitNamesAnotherStep) {
  drill_.nth(EventKind::committed, 0).name = drill_.name("3-1-1");
  expect_fail("step 2, rank 0, attempt 1: committed as 3-1-1 by try 1");
}

TEST_F(OneProvenance, FailsWhenAnAcknowledgementNamesAnotherTry) {
  drill_.nth(EventKind::acknowledged, 1).a = 2;
  expect_fail("step 2, rank 1, attempt 1: acknowledged as 2-1-1 by try 2");
}

TEST_F(OneProvenance, FailsWhenAShardLiesElsewhere) {
  drill_.nth(EventKind::shard_written, 4).name = drill_.name("shards/2-1-11/model-1");
  expect_fail("try 1 writes shard shards/2-1-11/model-1, which does not lie under 2-1-1");
}

TEST_F(OneProvenance, FailsWhenAShardIsOverwritten) {
  drill_.events.push_back(drill_.nth(EventKind::shard_written, 2));
  expect_fail("shard shards/2-1-1/extra-0 is written twice");
}

TEST_F(OneProvenance, FailsWhenTheStepNumberIsReadLate) {
  Event& commit = drill_.nth(EventKind::committed, 0);
  commit.step = 3;
  commit.name = drill_.name("3-1-1");
  expect_fail("3-1-1 is committed, and no shard was written for that step, attempt and try");
}

TEST_F(OneProvenance, FailsWhenAnIdIsCommittedTwice) {
  drill_.events.push_back(drill_.nth(EventKind::committed, 1));
  expect_fail("4-1-1 is committed twice");
}

class ValidatedIsKept : public ProbeTest {
 protected:
  ValidatedIsKept() : ProbeTest(judge_validated_is_kept) {}
};

TEST_F(ValidatedIsKept, FailsWhenNoneIsLeft) {
  change_last(ProbeView::power_fails, [](ProbeResult& result) { result.seen.clear(); });
  expect_fail("view power_fails: 0 validated checkpoints are whole, 2 must be; on the disk: nothing");
}

TEST_F(ValidatedIsKept, FailsWhenOneOfThemIsNoLongerWhole) {
  change_last(ProbeView::processes_die, [](ProbeResult& result) { result.seen.front().intact = false; });
  expect_fail(
      "1 validated checkpoints are whole, 2 must be; on the disk: 6-2-1 (validated, not whole), 8-2-1 (validated)");
}

TEST_F(ValidatedIsKept, DoesNotCountWhatIsNotValidated) {
  change_last(ProbeView::processes_die, [](ProbeResult& result) { result.seen.front().validated = false; });
  expect_fail("1 validated checkpoints are whole, 2 must be");
}

TEST_F(ValidatedIsKept, AsksForNoMoreThanWereValidated) {
  std::erase_if(drill_.events, [](const Event& event) { return event.kind == EventKind::validated && event.step > 2; });
  std::erase_if(drill_.events, [](const Event& event) { return event.kind == EventKind::retired; });
  change_last(ProbeView::processes_die, [](ProbeResult& result) { result.seen.pop_back(); });
  expect_pass_still();
}

TEST_F(ValidatedIsKept, CountsAMarkWhoseRankDiedBeforeItCouldSaySo) {
  std::erase_if(drill_.events,
                [](const Event& event) { return event.kind == EventKind::validated && event.step == 6; });
  expect_pass_still();
}

TEST_F(ValidatedIsKept, FailsWhenTheOldOneIsRetiredBeforeTheNewOneIsValidated) {
  std::erase_if(drill_.events, [](const Event& event) {
    return event.kind == EventKind::probe || (event.kind == EventKind::validated && event.step == 6);
  });
  expect_fail("2-1-1 is retired with 1 newer validated checkpoints, 2 are to be kept");
}

// Nobody could say that 4-1-1 was marked, and nobody looked at the disk; the next attempt starts from it.
TEST_F(ValidatedIsKept, CountsAMarkThatALaterAttemptFinds) {
  std::erase_if(drill_.events, [](const Event& event) {
    return event.kind == EventKind::probe || (event.kind == EventKind::validated && event.step == 4);
  });
  expect_fail("2-1-1 is retired with 1 newer validated checkpoints");
  for (Event& event : drill_.events) {
    if (event.kind == EventKind::found && event.a == 4) event.detail = drill_.tables.names.intern("validated");
  }
  expect_pass_still();
}

TEST_F(ValidatedIsKept, CountsAMarkThatALaterAttemptSetsUnderTheIdItMarks) {
  // Attempt 2 marks 4-1-1 again when it has restored it: still one checkpoint.
  drill_.add(EventKind::validated, {.attempt = 2, .rank = 0, .step = 8, .a = 1, .name = "8-2-1"});
  drill_.add(EventKind::retired, {.attempt = 2, .rank = 0, .a = 6, .b = 2, .c = 1, .name = "6-2-1"});
  expect_fail("6-2-1 is retired with 1 newer validated checkpoints");
}

TEST_F(ValidatedIsKept, DoesNotAskARetiredOneBackWhenANewerOneIsRejected) {
  // 4-1-1 may go when 6-2-1 and 8-2-1 are validated, and its tombstone stands before anybody says so; then 8-2-1 is
  // found damaged, and 6-2-1 is all there is.
  std::erase_if(drill_.events, [](const Event& event) { return event.kind == EventKind::retired && event.a == 4; });
  drill_.add(EventKind::rejected, {.attempt = 2, .rank = 0, .a = 8, .b = 2, .c = 1, .name = "8-2-1"});
  drill_.probe({.view = ProbeView::processes_die,
                .outcome = ProbeOutcome::found,
                .found = {.step = 6, .attempt = 2, .trial = 1},
                .seen = {{.id = {.step = 6, .attempt = 2, .trial = 1}, .validated = true, .intact = true}}});
  expect_pass_still();
}

TEST_F(ValidatedIsKept, LetsAnInterruptedRetirementBeDoneAgain) {
  drill_.add(EventKind::rejected, {.attempt = 2, .rank = 0, .a = 8, .b = 2, .c = 1, .name = "8-2-1"});
  drill_.add(EventKind::retired, {.attempt = 2, .rank = 0, .a = 4, .b = 1, .c = 1, .name = "4-1-1"});
  expect_pass_still();
}

TEST_F(ValidatedIsKept, DoesNotCountARejectedOne) {
  drill_.add(EventKind::rejected, {.attempt = 2, .rank = 0, .a = 8, .b = 2, .c = 1, .name = "8-2-1"});
  drill_.add(EventKind::retired, {.attempt = 2, .rank = 0, .a = 8, .b = 2, .c = 1, .name = "8-2-1"});
  expect_pass_still();
  drill_.add(EventKind::retired, {.attempt = 2, .rank = 0, .a = 6, .b = 2, .c = 1, .name = "6-2-1"});
  expect_fail("6-2-1 is retired with 0 newer validated checkpoints");
}

// 8-2-1 was marked, but not all could be told, so the next try has saved step 8 again; the other then goes.
TEST_F(ValidatedIsKept, LetsATryGoThatTheNextOneOfItsStepStandsInFor) {
  drill_.add(EventKind::validated, {.attempt = 2, .rank = 0, .step = 8, .a = 2, .name = "8-2-2"});
  const SeenCheckpoint newest{.id = {.step = 8, .attempt = 2, .trial = 2}, .validated = true, .intact = true};
  ProbeResult seen{.view = ProbeView::processes_die, .outcome = ProbeOutcome::found, .found = newest.id};
  seen.seen = {newest};
  drill_.probe(seen);
  drill_.add(EventKind::retired, {.attempt = 2, .rank = 0, .a = 8, .b = 2, .c = 1, .name = "8-2-1"});
  expect_pass_still();
  seen.seen.clear();
  drill_.probe(seen);
  expect_fail("0 validated checkpoints are whole, 1 must be");
  drill_.events.pop_back();
  drill_.add(EventKind::retired, {.attempt = 2, .rank = 0, .a = 6, .b = 2, .c = 1, .name = "6-2-1"});
  expect_fail("6-2-1 is retired with 1 newer validated checkpoints");
}

}  // namespace
}  // namespace firedrill

// The properties about attempts and faults: no_silent_restart, nothing_from_an_old_attempt, errors_reach_the_job,
// faults_fired.
#include "engine/base/error.h"
#include "harness/check/property_expect.h"

namespace firedrill {
namespace {

class NoSilentRestart : public PropertyTest {
 protected:
  NoSilentRestart() : PropertyTest(judge_no_silent_restart) {}

  // Attempt 1 did not get as far as `kinds` say, and attempt 2 begins.
  void begin_without(std::initializer_list<EventKind> kinds) {
    std::erase_if(drill_.events, [&](const Event& event) {
      return event.attempt == 2 || std::find(kinds.begin(), kinds.end(), event.kind) != kinds.end();
    });
    drill_.add(EventKind::attempt_started, {.attempt = 2, .a = 2, .b = -1});
  }
  void start_fresh() { drill_.add(EventKind::started_fresh, {.attempt = 2, .rank = 0}); }
  void restart_without(std::initializer_list<EventKind> kinds) {
    begin_without(kinds);
    start_fresh();
  }
};

TEST_F(NoSilentRestart, FailsBehindAnAcknowledgement) {
  restart_without({});
  expect_fail("attempt 2, rank 0 begins at step 0 although 4-1-1 was acknowledged");
}

TEST_F(NoSilentRestart, FailsBelowAFloor) {
  restart_without({});
  drill_.nth(EventKind::attempt_started, 1).b = 4;
  expect_fail("although its floor is step 4");
}

TEST_F(NoSilentRestart, FailsBehindAValidatedCheckpoint) {
  restart_without({EventKind::acknowledged});
  expect_fail("although 4-1-1 was validated");
}

TEST_F(NoSilentRestart, FailsBehindACommittedCheckpoint) {
  restart_without({EventKind::acknowledged, EventKind::validated});
  expect_fail("although 4-1-1 was committed");
}

TEST_F(NoSilentRestart, FailsWhenTheDiskHeldACheckpoint) {
  restart_without({EventKind::acknowledged, EventKind::validated, EventKind::committed});
  expect_fail("although 4-1-1 lies on the disk");
}

TEST_F(NoSilentRestart, FailsWhenTheDiskCouldNotBeRead) {
  begin_without({EventKind::acknowledged, EventKind::validated, EventKind::committed});
  drill_.probe({.outcome = ProbeOutcome::error, .error = "manifest unreadable"});
  start_fresh();
  expect_fail("although discovery fails there: manifest unreadable");
}

TEST_F(NoSilentRestart, PassesWhenThereWasNothing) {
  restart_without({EventKind::acknowledged, EventKind::validated, EventKind::committed, EventKind::probe});
  expect_pass_still();
}

TEST_F(NoSilentRestart, PassesWhenALostNodeTookWhatWasNotSynced) {
  begin_without({EventKind::acknowledged, EventKind::validated, EventKind::committed});
  drill_.add(EventKind::node_lost, {.a = 0, .b = 1, .c = 1});
  start_fresh();
  expect_pass_still();
}

TEST_F(NoSilentRestart, FailsWhenAnAttemptTrainsFromTheBeginningWithoutSayingSo) {
  std::erase_if(drill_.events, [](const Event& event) { return event.attempt == 2; });
  drill_.add(EventKind::attempt_started, {.attempt = 2, .a = 2, .b = -1});
  drill_.add(EventKind::step_done, {.attempt = 2, .rank = 1, .step = 1});
  expect_fail("attempt 2, rank 1 begins at step 0 although 4-1-1 was acknowledged");
}

class NothingFromAnOldAttempt : public PropertyTest {
 protected:
  NothingFromAnOldAttempt() : PropertyTest(judge_nothing_from_an_old_attempt) {}
};

TEST_F(NothingFromAnOldAttempt, FailsWhenAnOldRankStillWrites) {
  drill_.add(EventKind::disk_changed, {.attempt = 1, .rank = 1, .step = 5, .a = 2, .name = "shards/x/model-1"});
  expect_fail("step 5, rank 1, attempt 1: write of shards/x/model-1 after attempt 2 has started");
}

TEST_F(NothingFromAnOldAttempt, AllowsWhatWasRefused) {
  for (const Code code : {Code::fenced, Code::dead}) {
    drill_.add(EventKind::disk_changed, {.attempt = 1, .rank = 1, .a = 2, .c = 1 + static_cast<int>(code)});
  }
  expect_pass_still();
  drill_.add(EventKind::disk_changed,
             {.attempt = 1, .rank = 1, .a = 2, .c = 1 + static_cast<int>(Code::io_error), .name = "x"});
  expect_fail("write of x after attempt 2");
}

TEST_F(NothingFromAnOldAttempt, FailsWhenAnOldRankCompletesAStepOrPublishes) {
  for (const EventKind kind : {EventKind::step_done, EventKind::committed, EventKind::acknowledged, EventKind::retired,
                               EventKind::validated, EventKind::shard_written, EventKind::rejected}) {
    drill_.add(kind, {.attempt = 1, .rank = 0, .step = 5});
    expect_fail(fmt::format("step 5, rank 0, attempt 1: {} after attempt 2 has started", to_string(kind)));
    drill_.events.pop_back();
  }
  expect_pass_still();
}

TEST_F(NothingFromAnOldAttempt, FailsWhenAMessageOfAnOldAttemptIsTaken) {
  drill_.nth(EventKind::message_taken, 13).b = 1;
  expect_fail("attempt 2: takes a message that rank 0 sent in attempt 1");
}

class ErrorsReachTheJob : public PropertyTest {
 protected:
  ErrorsReachTheJob() : PropertyTest(judge_no_silent_restart) {
    property_ = judge_errors_reach_the_job;
    drill_.plan.faults.push_back({.kind = FaultKind::io_error});
    drill_.plan.faults.push_back({.kind = FaultKind::kill});
  }
  // Rank 1 meets an error in the save of step 4, in attempt 1.
  void fire(Phase phase) {
    Event fault;
    fault.kind = EventKind::fault_fired;
    fault.attempt = 1;
    fault.rank = 1;
    fault.step = 4;
    fault.phase = phase;
    fault.name = drill_.name("EIO on a write");
    const auto place = std::find_if(drill_.events.begin(), drill_.events.end(), [](const Event& event) {
      return event.kind == EventKind::shard_written && event.step == 4 && event.rank == 1;
    });
    drill_.events.insert(place, fault);
  }
  // Rank 1 is killed in step 5, which ends attempt 1.
  void fire_kill_of_attempt_1() {
    const auto end = std::find_if(drill_.events.begin(), drill_.events.end(),
                                  [](const Event& event) { return event.kind == EventKind::rank_ended; });
    drill_.events.insert(end, {.kind = EventKind::fault_fired, .rank = 1, .attempt = 1, .step = 5, .a = 1});
  }
  std::vector<Event>::iterator kill_of_attempt_1() {
    return std::find_if(drill_.events.begin(), drill_.events.end(),
                        [](const Event& event) { return event.kind == EventKind::fault_fired && event.a == 1; });
  }
  void forget_end_of_attempt_1() {
    std::erase_if(drill_.events, [](const Event& event) {
      return event.kind == EventKind::rank_ended || event.kind == EventKind::attempt_ended;
    });
  }
  void forget_success() {
    std::erase_if(drill_.events, [](const Event& event) {
      return (event.kind == EventKind::committed || event.kind == EventKind::acknowledged) && event.step == 4;
    });
  }
};

TEST_F(ErrorsReachTheJob, FailsWhenTheTryIsCommittedAllTheSame) {
  fire(Phase::save);
  expect_fail("step 4, rank 1, attempt 1: fault \"EIO on a write\" hit its try, and 4-1-1 is committed all the same");
}

TEST_F(ErrorsReachTheJob, FailsWhenNobodyReportsTheError) {
  fire(Phase::save);
  forget_success();
  expect_pass_still();
  forget_end_of_attempt_1();
  expect_fail("fault \"EIO on a write\" was reported by nobody");
}

TEST_F(ErrorsReachTheJob, FailsWhenOnlyAnUnrelatedKillEndsTheAttempt) {
  fire(Phase::rendezvous);
  expect_pass_still();  // the attempt ends, and nothing else explains it
  fire_kill_of_attempt_1();
  expect_fail("fault \"EIO on a write\" was reported by nobody");
  // An end before the kill is one by the error.
  Event end{.kind = EventKind::rank_ended, .rank = 1, .attempt = 1, .a = 1};
  drill_.events.insert(kill_of_attempt_1(), end);
  expect_pass_still();
}

TEST_F(ErrorsReachTheJob, AsksForNoReportOfARankThatTheKillKeptFromIt) {
  fire(Phase::save);
  forget_success();
  fire_kill_of_attempt_1();
  expect_fail("was reported by nobody");
  // Now the kill comes before the rank goes on to the next step.
  const Event kill = *kill_of_attempt_1();
  drill_.events.erase(kill_of_attempt_1());
  const auto place = std::find_if(drill_.events.begin(), drill_.events.end(), [](const Event& event) {
    return event.kind == EventKind::shard_written && event.step == 4 && event.rank == 1;
  });
  drill_.events.insert(place, kill);
  expect_pass_still();
}

TEST_F(ErrorsReachTheJob, PassesWhenTheSaveFails) {
  fire(Phase::save);
  forget_success();
  forget_end_of_attempt_1();
  drill_.add(EventKind::save_failed, {.attempt = 1, .rank = 1, .step = 4, .phase = Phase::save, .a = 1});
  expect_pass_still();
}

TEST_F(ErrorsReachTheJob, PassesWhenANewTryFollows) {
  fire(Phase::save);
  forget_success();
  forget_end_of_attempt_1();
  drill_.add(EventKind::save_started, {.attempt = 1, .rank = 1, .step = 4, .a = 2});
  drill_.add(EventKind::committed, {.attempt = 1, .rank = 0, .step = 4, .a = 2, .name = "4-1-2"});
  expect_pass_still();
}

TEST_F(ErrorsReachTheJob, LetsACommitStandWhoseValidationFailedButNotItsAcknowledgement) {
  fire(Phase::validate);
  expect_fail("4-1-1 is acknowledged all the same");
  std::erase_if(drill_.events,
                [](const Event& event) { return event.kind == EventKind::acknowledged && event.step == 4; });
  expect_pass_still();
}

TEST_F(ErrorsReachTheJob, LetsASaveStandBehindWhichRetentionFailed) {
  fire(Phase::retire);
  expect_pass_still();
}

TEST_F(ErrorsReachTheJob, FailsWhenAFailedSaveIsAcknowledgedWithoutAnyFault) {
  drill_.add(EventKind::save_failed,
             {.attempt = 2, .rank = 1, .step = 6, .phase = Phase::save, .a = 1, .name = "disk full"});
  expect_fail("step 6, rank 1, attempt 2: try 1 failed (disk full), and 6-2-1 is committed all the same");
}

TEST_F(ErrorsReachTheJob, DoesNotAskForAReportOfDropCache) {
  fire(Phase::save);
  forget_success();
  forget_end_of_attempt_1();
  drill_.plan.faults[0].at.file_op = FileOp::drop_cache;
  const Verdict verdict = drill_.judge_with(property_);
  EXPECT_TRUE(verdict.vacuous()) << verdict.evidence;
}

TEST_F(ErrorsReachTheJob, LetsASecondLookInFindTakeAReadErrorBackButNotAWriteError) {
  fire(Phase::find);
  forget_end_of_attempt_1();
  EXPECT_TRUE(drill_.judge_with(property_).vacuous());
  drill_.plan.faults[0].at.file_op = FileOp::sync;
  expect_fail("was reported by nobody");
}

TEST_F(ErrorsReachTheJob, LeavesKillsToOthers) {
  fire(Phase::save);
  drill_.nth(EventKind::fault_fired, 0).a = 1;
  EXPECT_TRUE(drill_.judge_with(property_).vacuous());
}

TEST_F(ErrorsReachTheJob, DoesNotJudgeTheOrderInTheProcessWorld) {
  fire(Phase::save);
  forget_success();
  forget_end_of_attempt_1();
  Event report;
  report.kind = EventKind::save_failed;
  report.attempt = 1;
  drill_.events.insert(drill_.events.begin(), report);
  expect_fail("was reported by nobody");
  drill_.plan.world = WorldKind::process;
  expect_pass_still();
}

class FaultsFired : public ::testing::Test {
 protected:
  FaultsFired() {
    drill_.plan.faults.resize(2);
    drill_.add(EventKind::fault_planned, {.a = 0, .name = "kill rank 1"});
    drill_.add(EventKind::fault_planned, {.a = 1, .name = "kill rank 2"});
    drill_.add(EventKind::fault_fired, {.rank = 1, .a = 0, .name = "kill rank 1"});
  }
  DrillBuilder drill_;
};

TEST_F(FaultsFired, IsUnknownAndNamesTheFaultThatDidNot) {
  expect_unknown(drill_, judge_faults_fired, "did not fire: kill rank 2");
}

TEST_F(FaultsFired, PassesWhenAllDid) {
  drill_.add(EventKind::fault_fired, {.rank = 2, .a = 1});
  expect_pass(drill_, judge_faults_fired);
}

TEST_F(FaultsFired, PassesWhenTheMissingOneMayStayOut) {
  drill_.plan.faults[1].may_not_fire = true;
  expect_pass(drill_, judge_faults_fired);
  EXPECT_EQ(drill_.judge_with(judge_faults_fired).checked, 1);
}

TEST_F(FaultsFired, IsUnknownWhenAFaultFiredThatThePlanDoesNotHave) {
  drill_.add(EventKind::fault_fired, {.rank = 2, .a = 2});
  expect_unknown(drill_, judge_faults_fired, "fault 2 fired, and the plan has 2");
}

}  // namespace
}  // namespace firedrill

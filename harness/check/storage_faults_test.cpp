// What a journaled storage fault excuses, and what it does not: each property is seen to fail beside its excuse.
#include "harness/check/property_expect.h"

namespace firedrill {
namespace {

// A run of two saves (2-1-1, 4-1-1) in which a fault of the kind fires at the file, before what the test adds.
class WithFault : public testing::Test {
 protected:
  WithFault() {
    drill.start_fresh();
    for (int step = 1; step <= 4; ++step) {
      drill.train(step);
      if (step % 2 == 0) drill.save(step);
    }
  }
  void fire(FaultKind kind, std::string_view path, Phase phase = Phase::find, FileOp op = FileOp::open) {
    drill.plan.faults.push_back({.kind = kind});
    drill.add(EventKind::fault_fired, {.rank = 1,
                                       .step = 4,
                                       .phase = phase,
                                       .a = std::ssize(drill.plan.faults) - 1,
                                       .b = 1 + static_cast<std::int64_t>(op),
                                       .name = "the fault",
                                       .detail = path});
  }
  // What a probe says when the checkpoints are whole or not.
  void probe(std::vector<SeenCheckpoint> seen, ProbeView view = ProbeView::processes_die) {
    ProbeResult result{.view = view, .seen = std::move(seen)};
    for (const SeenCheckpoint& one : result.seen) {
      if (!one.intact) continue;
      result.outcome = ProbeOutcome::found;
      result.found = one.id;
      result.complete = true;
      result.provenance_coherent = true;
      result.state = drill.whole_state(one.id.step);
    }
    if (result.outcome != ProbeOutcome::found && !result.seen.empty()) {
      result.outcome = ProbeOutcome::error;
      result.error = "nothing is whole";
    }
    drill.probe(std::move(result));
  }
  Outcome judged(Verdict (*property)(const Case&)) {
    const Verdict verdict = drill.judge_with(property);
    evidence = verdict.evidence;
    return verdict.outcome;
  }

  static constexpr CheckpointId second{.step = 2, .attempt = 1, .trial = 1};
  static constexpr CheckpointId fourth{.step = 4, .attempt = 1, .trial = 1};
  DrillBuilder drill;
  std::string evidence;
};

TEST_F(WithFault, DamageAtRestExcusesTheCheckpointItHitAndNoOther) {
  fire(FaultKind::bit_flip_at_rest, "shards/4-1-1/model-1");
  probe({{second, true, true}, {fourth, true, false}});
  for (const auto property :
       {judge_acknowledged_is_durable, judge_validated_is_kept, judge_partial_never_discoverable}) {
    EXPECT_EQ(judged(property), Outcome::pass) << evidence;
  }
  drill.add(EventKind::rejected, {.rank = 0, .a = 4, .b = 1, .c = 1, .name = "4-1-1"});
  probe({{second, true, true}});
  EXPECT_EQ(judged(judge_validated_is_kept), Outcome::pass) << evidence;
  probe({{second, true, false}, {fourth, true, false}});
  EXPECT_EQ(judged(judge_acknowledged_is_durable), Outcome::fail);
  EXPECT_EQ(judged(judge_validated_is_kept), Outcome::fail);
  EXPECT_NE(evidence.find("0 validated checkpoints are whole, 1 must be"), std::string::npos) << evidence;
  EXPECT_EQ(judged(judge_partial_never_discoverable), Outcome::fail);
  EXPECT_NE(evidence.find("2-1-1 is committed and not whole"), std::string::npos) << evidence;
}

TEST_F(WithFault, DamageByAWriteExcusesNothingThatWasAcknowledged) {
  fire(FaultKind::torn_write, "shards/4-1-1/model-1", Phase::save, FileOp::write);
  probe({{second, true, true}, {fourth, true, false}});
  EXPECT_EQ(judged(judge_partial_never_discoverable), Outcome::pass) << evidence;
  EXPECT_EQ(judged(judge_acknowledged_is_durable), Outcome::fail);
  EXPECT_EQ(judged(judge_validated_is_kept), Outcome::fail);
}

TEST_F(WithFault, DiscoveryMayFailOnlyWhereNothingWholeIsLeft) {
  fire(FaultKind::file_vanishes, "shards/4-1-1/model-1");
  ProbeResult error{.outcome = ProbeOutcome::error,
                    .error = "it does not look further",
                    .seen = {{second, true, true}, {fourth, true, false}}};
  drill.probe(std::move(error));
  EXPECT_EQ(judged(judge_partial_never_discoverable), Outcome::fail);
}

TEST_F(WithFault, ALieOfTheDiskExcusesWhatAPowerLossWouldLeaveAndNothingElse) {
  fire(FaultKind::lying_sync, "shards/4-1-1/model-1", Phase::save, FileOp::sync);
  probe({{second, true, true}, {fourth, true, false}}, ProbeView::power_fails);
  for (const auto property :
       {judge_acknowledged_is_durable, judge_validated_is_kept, judge_partial_never_discoverable}) {
    EXPECT_EQ(judged(property), Outcome::pass) << evidence;
  }
  probe({{second, true, true}, {fourth, true, false}});
  for (const auto property :
       {judge_acknowledged_is_durable, judge_validated_is_kept, judge_partial_never_discoverable}) {
    EXPECT_EQ(judged(property), Outcome::fail);
  }
}

TEST_F(WithFault, AStartBelowTheFloorNeedsItsDamageReported) {
  fire(FaultKind::bit_flip_at_rest, "shards/4-1-1/model-1");
  drill.start_from(second, 4);
  EXPECT_EQ(judged(judge_acknowledged_is_durable), Outcome::fail);
  EXPECT_NE(evidence.find("resumes from step 2 although step 4 was acknowledged"), std::string::npos) << evidence;
  // The same start, its damage found first.
  const auto start = std::find_if(drill.events.begin(), drill.events.end(), [](const Event& event) {
    return event.kind == EventKind::found && event.attempt == 2;
  });
  Event damage{.kind = EventKind::damage, .attempt = 2, .a = 4, .b = 1, .c = 1, .name = drill.name("4-1-1")};
  drill.events.insert(start, damage);
  EXPECT_EQ(judged(judge_acknowledged_is_durable), Outcome::pass) << evidence;
}

TEST_F(WithFault, ReportedDamageExcusesOnlyTheCheckpointsThatItNames) {
  fire(FaultKind::bit_flip_at_rest, "shards/4-1-1/model-1");
  drill.start(4);
  drill.add(EventKind::damage, {.rank = 0, .a = 4, .b = 1, .c = 1, .name = "4-1-1"});
  drill.add(EventKind::found, {.rank = 0, .a = -1});
  EXPECT_EQ(judged(judge_acknowledged_is_durable), Outcome::fail);
  EXPECT_NE(evidence.find("resumes from nothing although step 2 was acknowledged"), std::string::npos) << evidence;
  drill.events.back().a = 2;
  EXPECT_EQ(judged(judge_acknowledged_is_durable), Outcome::pass) << evidence;
  // Nor does damage to an older one excuse passing over the newest.
  drill.nth(EventKind::damage, 0).a = 2;
  EXPECT_EQ(judged(judge_acknowledged_is_durable), Outcome::fail);
  EXPECT_NE(evidence.find("resumes from step 2 although step 4 was acknowledged"), std::string::npos) << evidence;
}

TEST_F(WithFault, SilentDamageMustBeNoticedBeforeTheMark) {
  for (const bool noticed : {true, false}) {
    drill.events.clear();
    drill.plan.faults.clear();
    drill.start_fresh();
    drill.add(EventKind::save_started, {.rank = 1, .step = 2, .a = 1});
    fire(FaultKind::dropped_write, "shards/2-1-1/model-1", Phase::save, FileOp::write);
    drill.events.back().step = 2;
    drill.add(EventKind::committed, {.rank = 0, .step = 2, .a = 1, .name = "2-1-1"});
    if (noticed) {
      drill.add(EventKind::save_failed, {.rank = 0, .step = 2, .phase = Phase::validate, .a = 1, .name = "it differs"});
      EXPECT_EQ(judged(judge_errors_reach_the_job), Outcome::pass) << evidence;
    }
    drill.add(EventKind::validated, {.rank = 0, .step = 2, .a = 1, .name = "2-1-1"});
    EXPECT_EQ(judged(judge_errors_reach_the_job), Outcome::fail);
    EXPECT_NE(evidence.find(noticed ? "2-1-1 is validated all the same" : "was reported by nobody"), std::string::npos)
        << evidence;
  }
}

TEST_F(WithFault, AFailedSyncIsAnErrorLikeAnyOther) {
  fire(FaultKind::failed_sync, "shards/4-1-1/model-1", Phase::save, FileOp::sync);
  EXPECT_EQ(judged(judge_errors_reach_the_job), Outcome::fail);
  EXPECT_NE(evidence.find("was reported by nobody"), std::string::npos) << evidence;
}

}  // namespace
}  // namespace firedrill

#include "harness/check/property_expect.h"

namespace firedrill {
namespace {

// whole_run(): steps 1 to 4, killed in step 5, then steps 5 to 8; two ranks that hold weight.0 and weight.1 alike.
class ReplicasAgree : public PropertyTest {
 protected:
  ReplicasAgree() : PropertyTest(judge_replicas_agree) {}
};

// Attempt 1 does step 3 as a fault hits rank 1, whose replica is then another one, and ends behind it.
class DamagedRun {
 public:
  explicit DamagedRun(const FaultSpec& fault, bool saved = false) {
    drill.plan.faults = {fault};
    drill.start_fresh();
    drill.train(1);
    drill.train(2);
    drill.save(2);
    drill.add(EventKind::fault_fired, {.rank = 1, .step = 3, .phase = Phase::optimizer, .a = 0});
    drill.train(3);
    drill.nth(EventKind::step_done, 5).digest = drill.wrong_state(3, 1, "weight.0");
    if (saved) drill.save(4);
    drill.add(EventKind::replicas_compared, {.rank = 0, .step = 3, .a = 2, .b = -2, .name = "weight.0"});
    drill.add(EventKind::rank_ended, {.rank = 0, .step = 3, .a = 1});
    drill.add(EventKind::attempt_ended, {.b = 2});
    drill.start_from({.step = 2, .attempt = 1, .trial = 1}, 2);
    for (int step = 3; step <= 8; ++step) drill.train(step);
  }
  void passes(Verdict (*property)(const Case&)) { expect_pass(drill, property); }
  void fails(Verdict (*property)(const Case&), std::string_view evidence) { expect_fail(drill, property, evidence); }

  DrillBuilder drill;
};

TEST_F(ReplicasAgree, FailsWhenOneOfTwoReplicasDrifts) {
  drill_.nth(EventKind::step_done, 11).digest = drill_.wrong_state(6, 1, "weight.0");
  expect_fail("ranks 0 and 1 hold other bits of weight.0 after step 6, attempt 2");
}

TEST_F(ReplicasAgree, LetsRanksDifferInWhatOnlyOneOfThemHolds) {
  drill_.nth(EventKind::step_done, 11).digest = drill_.wrong_state(6, 1, "random.lane.1");
  expect_pass_still();
}

TEST_F(ReplicasAgree, DoesNotMindWhatAllReplicasHaveWrongAlike) {
  drill_.nth(EventKind::step_done, 10).digest = drill_.wrong_state(6, 0, "weight.0");
  drill_.nth(EventKind::step_done, 11).digest = drill_.wrong_state(6, 1, "weight.0");
  expect_pass_still();
}

TEST_F(ReplicasAgree, FailsWhenTheEngineItselfFoundADifference) {
  drill_.add(EventKind::replicas_compared, {.rank = 0, .step = 8, .a = 2, .b = -1, .name = "all"});
  expect_pass_still();
  drill_.add(EventKind::replicas_compared, {.rank = 0, .step = 8, .a = 2, .b = -2, .name = "layers.0.mlp"});
  expect_fail("the replicas of layers.0.mlp differ");
}

TEST(ReplicaDamage, IsExcusedIfItIsDirectAndItsAttemptSavedNothingOfIt) {
  for (const FaultSpec& fault :
       {FaultSpec{.kind = FaultKind::bit_flip, .target = Target::parameter},
        FaultSpec{.kind = FaultKind::nan, .target = Target::moment}, FaultSpec{.kind = FaultKind::corrupt_payload}}) {
    DamagedRun run(fault);
    run.passes(judge_replicas_agree);
    run.passes(judge_resume_equals_golden);
  }
}

TEST(ReplicaDamage, IsNotExcusedIfItWasSaved) {
  DamagedRun run({.kind = FaultKind::bit_flip, .target = Target::parameter}, true);
  run.fails(judge_replicas_agree, "hold other bits of weight.0 after step 3");
  run.fails(judge_resume_equals_golden, "step 3");
}

// Behind a skipped call, where calls are compared.
TEST(ReplicaDamage, IsExcusedInASaveThatWasDispatchedAndNotCommitted) {
  const auto dispatched = [](const FaultSpec& fault) {
    DamagedRun run(fault);
    run.drill.plan.layout.guard = Guard::check;
    std::erase_if(run.drill.events, [](const Event& event) { return event.kind == EventKind::replicas_compared; });
    Event save = run.drill.nth(EventKind::step_done, 5);
    save.kind = EventKind::save_dispatched;
    const auto done = std::ranges::find_if(run.drill.events, [&](const Event& event) {
      return event.kind == EventKind::step_done && event.digest == save.digest;
    });
    run.drill.events.insert(done + 1, save);
    return run;
  };
  DamagedRun skipped = dispatched({.kind = FaultKind::skip_call});
  skipped.passes(judge_replicas_agree);
  skipped.passes(judge_resume_equals_golden);
  // A rank that gave up makes no other calls than its peers.
  dispatched({.kind = FaultKind::early_abort}).fails(judge_replicas_agree, "hold other bits of weight.0 after step 3");
  const auto save = std::ranges::find(skipped.drill.events, EventKind::save_dispatched, &Event::kind);
  Event commit = *save;
  commit.kind = EventKind::committed;
  commit.name = skipped.drill.name("3-1-1");
  skipped.drill.events.insert(save + 1, commit);
  skipped.fails(judge_replicas_agree, "hold other bits of weight.0 after step 3");
  dispatched({.kind = FaultKind::bit_flip, .target = Target::parameter}).fails(judge_resume_equals_golden, "step 3");
}

TEST(ReplicaDamage, IsNotExcusedIfACorrectEngineSpreadsItAlike) {
  DamagedRun gradient({.kind = FaultKind::bit_flip, .target = Target::gradient});
  gradient.fails(judge_replicas_agree, "hold other bits of weight.0 after step 3");
  DamagedRun kill({.kind = FaultKind::kill});
  kill.fails(judge_replicas_agree, "hold other bits of weight.0 after step 3");
  // A payload ahead of the reduction makes both replicas wrong alike.
  DamagedRun payload({.kind = FaultKind::corrupt_payload});
  payload.drill.nth(EventKind::step_done, 4).digest = payload.drill.wrong_state(3, 0, "weight.0");
  payload.fails(judge_resume_equals_golden, "step 3");
}

}  // namespace
}  // namespace firedrill

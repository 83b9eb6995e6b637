#include <array>

#include "harness/check/test_calls.h"

namespace firedrill {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(CallsTest, MembersThatToldOtherCallsOfAStepDisagree) {
  const auto tell = [this](int rank, std::int64_t calls, std::string_view prints) {
    drill_.add(EventKind::calls, {.rank = rank, .step = 3, .a = calls, .name = dp, .digest = digest_of(prints)});
  };
  for (int rank = 0; rank < 3; ++rank) tell(rank, 2, "ab");
  expect_agree();
  tell(3, 2, "ba");
  expect_agree_fails("step 3: ranks 0 and 3 made other calls of dp[0-3]");
  drill_.events.pop_back();
  tell(3, 1, "a");
  expect_agree_fails("rank 0 made 2 calls of dp[0-3], rank 3 made 1");
}

TEST_F(CallsTest, WithoutAGuardNothingIsJudged) {
  const Verdict verdict = drill_.judge_with(judge_collectives_agree);
  EXPECT_TRUE(verdict.vacuous());
  EXPECT_TRUE(drill_.judge_with(judge_failures_are_attributed).vacuous());
}

TEST_F(CallsTest, AMismatchNamesTheOddRankAndEachFieldThatDiffers) {
  for (const int rank : {0, 1, 3}) record(rank, {});
  record(2, {.count = 7});
  end();
  expect_agree_fails("rank 0 issued all_reduce f32 sum gradients (call 4 of dp[0-3], step 5, exchange), and rank 2");
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, BlameKind::mismatch);
  EXPECT_THAT(found->ranks, ElementsAre(2));
  EXPECT_EQ(found->sequence, 4);
  EXPECT_EQ(found->phase, Phase::exchange);
  EXPECT_EQ(found->what, "count 7 instead of 8");
}

TEST_F(CallsTest, OfTwoThatDisagreeBothAreNamed) {
  record(0, {.stream = "dp[0-1]"});
  record(1, {.stream = "dp[0-1]", .call = "all_reduce f32 max gradients"});
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(0, 1));
}

TEST_F(CallsTest, ACallOfAnotherPhaseIsAnotherCall) {
  constexpr std::string_view head = "all_gather parameters.head";
  record(0, {.stream = "dp[0-1]", .phase = Phase::forward, .completed = true, .call = head});  // once more
  record(0, {.stream = "dp[0-1]", .sequence = 5, .phase = Phase::backward, .call = head});
  record(1, {.stream = "dp[0-1]", .phase = Phase::backward, .completed = true, .call = head});
  record(1, {.stream = "dp[0-1]", .sequence = 5, .phase = Phase::backward, .call = "all_gather parameters.mlp"});
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(0, 1));
  EXPECT_EQ(found->sequence, 4);
  EXPECT_THAT(found->what, HasSubstr("phase"));
}

TEST_F(CallsTest, ACallThatAJournaledFaultChangedIsExcusedUnlessItWasSaved) {
  fire(FaultKind::wrong_count, 2);
  for (const int rank : {0, 1, 3}) record(rank, {});
  record(2, {.count = 7});
  end();
  expect_agree();
  expect_pass(drill_, judge_failures_are_attributed);
  drill_.add(EventKind::acknowledged, {.rank = 0, .step = 6, .name = "6-1-1"});
  expect_agree_fails("rank 0 issued");
}

TEST_F(CallsTest, AFaultOfOneRankDoesNotExcuseAnother) {
  fire(FaultKind::wrong_count, 1);
  for (const int rank : {0, 1, 3}) record(rank, {});
  record(2, {.count = 7});
  end();
  expect_agree_fails("rank 2");
  expect_fail(drill_, judge_failures_are_attributed, "explained by: attempt 1: rank 2 disagrees about");
}

TEST_F(CallsTest, RanksThatWaitCrosswiseDisagreeAndTheFewAreBlamed) {
  for (const int rank : {0, 1, 2}) record(rank, {.waited_for = 3});
  record(3, {.stream = world, .sequence = 9, .step = 12, .phase = Phase::none, .waited_for = 0, .call = "barrier end"});
  end();
  expect_agree_fails("rank 0 waits in all_reduce f32 sum gradients (call 4 of dp[0-3], step 5, exchange) while rank 3");
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, BlameKind::missing);
  EXPECT_THAT(found->ranks, ElementsAre(3));
  EXPECT_EQ(found->sequence, 4);
  EXPECT_EQ(found->step, 5);
}

TEST_F(CallsTest, ARankInACallTooManyIsNamedThere) {
  record(2, {.sequence = 5, .waited_for = 0});
  for (const int rank : {0, 1, 3}) {
    record(rank, {.stream = world, .sequence = 9, .phase = Phase::save, .waited_for = 2, .call = "all_gather u8 save"});
  }
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(2));
  EXPECT_EQ(found->phase, Phase::exchange);
  EXPECT_EQ(found->sequence, 5);
}

TEST_F(CallsTest, ARankThatGaveUpByItselfIsMissing) {
  for (const int rank : {0, 1, 3}) record(rank, {.waited_for = 2});
  record(2, {.sequence = 3, .step = 4, .completed = true});
  fire(FaultKind::early_abort, 2);
  end();
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, BlameKind::missing);
  EXPECT_THAT(found->ranks, ElementsAre(2));
  EXPECT_EQ(found->last_completed.at(2), "all_reduce f32 sum gradients (call 3 of dp[0-3], step 4, exchange)");
  EXPECT_EQ(found->last_completed.at(0), "none");
  expect_pass(drill_, judge_failures_are_attributed);
  expect_agree();
}

TEST_F(CallsTest, ADeadRankIsNamedWithThePlaceOfItsDeath) {
  drill_.add(EventKind::rank_ended, {.rank = 1, .step = 5, .phase = Phase::backward, .a = 2});
  for (const int rank : {0, 2, 3}) record(rank, {.waited_for = 1});
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, BlameKind::dead);
  EXPECT_THAT(found->ranks, ElementsAre(1));
  EXPECT_EQ(found->phase, Phase::backward);
  EXPECT_THAT(describe(*found), HasSubstr("rank 1 died at step 5, backward; the others wait in all_reduce"));
}

TEST_F(CallsTest, ALostMessageNamesBothEndsOfItsLink) {
  record(0, {.waited_for = 2});  // the owner waits for rank 2
  for (const int rank : {1, 2, 3}) record(rank, {.waited_for = 0});
  fire(FaultKind::drop_message, 2);
  end();
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, BlameKind::link);
  EXPECT_THAT(found->ranks, ElementsAre(0, 2));
  expect_pass(drill_, judge_failures_are_attributed);
}

TEST_F(CallsTest, ALostAnswerNamesItsReceiverAndItsSenderThatWentOn) {
  record(0, {.completed = true});
  record(1, {.waited_for = 0});
  record(2, {.completed = true});
  record(3, {.completed = true});
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, BlameKind::link);
  EXPECT_THAT(found->ranks, ElementsAre(0, 1));
}

TEST_F(CallsTest, AFaultThatIsNotNamedFailsTheAttribution) {
  fire(FaultKind::drop_message, 3);
  record(0, {.waited_for = 2});
  for (const int rank : {1, 2, 3}) record(rank, {.waited_for = 0});
  end();
  expect_fail(drill_, judge_failures_are_attributed, "ranks 0, 2 lost a message");
}

TEST_F(CallsTest, TheEarliestMismatchIsThatOfItsStreamInWhateverOrderTheyWereTold) {
  // Micro-batches take turns: of dp a forward comes behind a backward, and what world does there ahead of both.
  const Spoken back{.sequence = 3, .phase = Phase::exchange};
  const Spoken forth{.sequence = 4, .phase = Phase::forward};
  const Spoken of_world{.stream = world, .sequence = 1, .phase = Phase::backward};
  for (const auto& order : {std::array{back, forth, of_world}, std::array{of_world, forth, back}}) {
    const auto begin = drill_.events.size();
    for (Spoken one : order) {
      record(0, one);
      one.count = 7;
      record(1, one);
    }
    const auto found = blame();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->stream, world);
    drill_.events.resize(begin);
  }
}

// Faults of two ranks that are a group, whose records agree: of what must be attributed nothing is.
class BothMembersHit : public CallsTest {
 protected:
  BothMembersHit() {
    for (const int rank : {0, 1}) record(rank, {.stream = "tp[0-1]"});
    end();
  }
  void hit(FaultKind kind, int rank, std::string_view call = "tp[0-1] call 4 all_reduce gradients") {
    drill_.plan.faults.push_back({.kind = kind, .at = {.rank = rank}});
    drill_.add(
        EventKind::fault_fired,
        {.rank = rank, .step = 5, .phase = Phase::exchange, .a = std::ssize(drill_.plan.faults) - 1, .detail = call});
  }
  bool judged() { return !drill_.judge_with(judge_failures_are_attributed).vacuous(); }
};

TEST_F(BothMembersHit, AlikeInACallNeedNotBeNamed) {
  hit(FaultKind::wrong_dtype, 0);
  EXPECT_TRUE(judged());
  hit(FaultKind::wrong_dtype, 1);
  EXPECT_FALSE(judged());
}
TEST_F(BothMembersHit, EachInAnotherWayAreJudged) {
  hit(FaultKind::wrong_count, 0);
  hit(FaultKind::wrong_dtype, 1);
  EXPECT_TRUE(judged());
}
TEST_F(BothMembersHit, EachInAnotherCallAreJudged) {
  hit(FaultKind::wrong_dtype, 0);
  hit(FaultKind::wrong_dtype, 1, "tp[0-1] call 5 all_reduce gradients");
  EXPECT_TRUE(judged());
}
TEST_F(BothMembersHit, AreJudgedWhereAnotherRankWasKilledToo) {
  hit(FaultKind::wrong_dtype, 0);
  hit(FaultKind::wrong_dtype, 1);
  hit(FaultKind::kill, 2, "");
  EXPECT_TRUE(judged());
}
TEST_F(BothMembersHit, AreJudgedWhereTheyGaveUp) {
  hit(FaultKind::early_abort, 0);
  hit(FaultKind::early_abort, 1);
  EXPECT_TRUE(judged());
}

// Rank 2 leaves out call 4, in which the others wait for it.
class SkippedCall : public CallsTest {
 protected:
  void judge_with(std::string_view hit, Outcome outcome, FaultKind kind = FaultKind::skip_call,
                  Phase phase = Phase::exchange) {
    for (const int rank : {0, 1, 3}) record(rank, {.waited_for = 2});
    record(2, {.sequence = 3, .step = 4, .completed = true});
    fire(kind, 2, 5, phase, hit);
    end();
    History history(drill_.tables);
    for (const Event& event : drill_.events) history.append(event);
    EXPECT_EQ(judge_failures_are_attributed(Case(history, drill_.plan)).outcome, outcome) << hit;
  }
};

TEST_F(SkippedCall, IsNamedByItsGroupAndSequence) { judge_with("dp[0-3] call 4 all_reduce gradients", Outcome::pass); }
TEST_F(SkippedCall, IsMissedByAVerdictThatIsOneOffInTheSequence) {
  judge_with("dp[0-3] call 5 all_reduce gradients", Outcome::fail);
}
TEST_F(SkippedCall, IsMissedByAVerdictOneAheadInTheSequence) {
  judge_with("dp[0-3] call 3 all_reduce gradients", Outcome::fail);
}
TEST_F(SkippedCall, IsMissedByAVerdictOfAnotherGroup) {
  judge_with("world[0-3] call 4 all_reduce gradients", Outcome::fail);
}
TEST_F(SkippedCall, IsMissedByAVerdictOfAnotherPurpose) { judge_with("dp[0-3] call 4 all_reduce loss", Outcome::fail); }
TEST_F(SkippedCall, WouldBeNamedInTheCallBehindItHadItBeenDoubled) {
  judge_with("dp[0-3] call 3 all_reduce gradients", Outcome::pass, FaultKind::duplicate_call);
}
TEST_F(SkippedCall, IsKnownByItsNumberWhereverItIsJournaled) {
  const std::string_view call = "dp[0-3] call 4 all_reduce gradients";
  judge_with(call, Outcome::pass, FaultKind::reorder_calls, Phase::optimizer);
}
TEST_F(SkippedCall, IsNoCallThatADeadRankCouldHaveBeenMissedIn) {
  drill_.add(EventKind::rank_ended, {.rank = 2, .step = 5, .phase = Phase::exchange, .a = 2});
  judge_with("dp[0-3] call 3 all_reduce gradients", Outcome::fail, FaultKind::kill);
}

// Rank 2 dies in call 3; the others tell that they wait for it in call 4.
class DeathInACall : public CallsTest {
 protected:
  Outcome judged(bool put_off) {
    for (const int rank : {0, 1, 3}) {
      record(rank, {.sequence = 3, .step = 5, .completed = !put_off});
      record(rank, {.waited_for = 2});
    }
    drill_.add(EventKind::rank_ended, {.rank = 2, .step = 5, .phase = Phase::exchange, .a = 2});
    fire(FaultKind::kill, 2, 5, Phase::exchange, "dp[0-3] call 3 all_reduce gradients");
    end();
    History history(drill_.tables);
    for (const Event& event : drill_.events) history.append(event);
    return judge_failures_are_attributed(Case(history, drill_.plan)).outcome;
  }
};

TEST_F(DeathInACall, MayBeMissedInALaterOneIfTheOthersPutThatCallOff) { EXPECT_EQ(judged(true), Outcome::pass); }
TEST_F(DeathInACall, IsMissedInALaterOneWhereverOtherGroupsStand) {
  record(4, {.stream = "dp[4-7]", .sequence = 6, .waited_for = 5});
  EXPECT_EQ(judged(true), Outcome::pass);
}
TEST_F(CallsTest, ACutLinkMayLoseNothingBeforeALaterCall) {
  record(0, {.sequence = 3, .completed = true});
  const auto is_there = [this](FaultKind kind) {
    fire(kind, 2, 5, Phase::exchange, "dp[0-3] call 3 all_reduce gradients");
    History history(drill_.tables);
    for (const Event& event : drill_.events) history.append(event);
    return is_at_call(Case(history, drill_.plan), {.stream = std::string(dp), .sequence = 6}, drill_.events.back());
  };
  EXPECT_TRUE(is_there(FaultKind::partition));
  EXPECT_FALSE(is_there(FaultKind::kill)) << "which is missed at once";
}
TEST_F(CallsTest, NobodyWentPastADeathWhereNoOtherMemberToldItsCalls) {
  const auto is_there = [this] {
    History history(drill_.tables);
    for (const Event& event : drill_.events) history.append(event);
    return is_at_call(Case(history, drill_.plan), {.stream = std::string(dp), .sequence = 4}, drill_.events.back());
  };
  record(4, {.stream = "dp[4-7]", .sequence = 6, .waited_for = 5});
  record(2, {.sequence = 3});
  fire(FaultKind::kill, 2, 5, Phase::exchange, "dp[0-3] call 3 all_reduce gradients");
  EXPECT_FALSE(is_there());
  record(0, {.sequence = 3});  // which it has put off
  fire(FaultKind::kill, 2, 5, Phase::exchange, "dp[0-3] call 3 all_reduce gradients");
  EXPECT_TRUE(is_there());
}
TEST_F(CallsTest, WhoDiesAheadOfAReceiveMayBeMissedBehindIt) {
  constexpr std::string_view stream = "pp[0>2]";
  record(0, {.stream = stream, .sequence = 3, .completed = true, .call = "send f32 activation"});
  record(0, {.stream = stream, .waited_for = 2, .call = "send f32 activation"});
  drill_.add(EventKind::rank_ended, {.rank = 2, .step = 5, .phase = Phase::exchange, .a = 2});
  fire(FaultKind::kill, 2, 5, Phase::exchange, "pp[0>2] call 3 recv activation");
  end();
  expect_pass(drill_, judge_failures_are_attributed);
}
TEST_F(DeathInACall, IsNotMissedInALaterOneIfTheOthersHaveCompletedThatCall) {
  EXPECT_EQ(judged(false), Outcome::fail);
}

TEST_F(CallsTest, ATaskThatGaveUpIsNamedInItsOwnStepAndNotInThatOfTheOther) {
  constexpr std::string_view publish = "publish[0-3]";
  drill_.plan.job.checkpoint.mode = PublishMode::async;
  for (const int rank : {0, 2, 3}) {
    record(rank, {.sequence = 9, .step = 10, .waited_for = 1});
    record(rank, {.stream = publish, .sequence = 18, .step = 8, .phase = Phase::validate, .waited_for = 1});
  }
  record(1, {.sequence = 9, .step = 10, .waited_for = 0});
  record(1, {.stream = publish, .sequence = 17, .step = 8, .phase = Phase::commit, .completed = true});
  gives_up(1, 8, Phase::validate);
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, BlameKind::missing);
  EXPECT_THAT(found->ranks, ElementsAre(1));
  EXPECT_EQ(found->stream, publish);
  EXPECT_EQ(found->sequence, 18);
  EXPECT_EQ(found->step, 8);
  EXPECT_EQ(found->phase, Phase::validate);
}

TEST_F(CallsTest, APublishThatIsCutShortDoesNotHideWhoGaveUp) {
  drill_.plan.job.checkpoint.mode = PublishMode::async;
  for (const int rank : {0, 1, 2}) {
    record(rank, {.waited_for = 3});
    record(rank, {.stream = "publish[0-3]", .sequence = 15, .step = 4, .phase = Phase::save, .completed = true});
  }
  record(3, {.sequence = 3, .step = 4, .completed = true});
  record(3, {.stream = "publish[0-3]", .sequence = 15, .step = 4, .phase = Phase::save, .waited_for = 2});
  gives_up(3, 5, Phase::exchange);
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(3));
  EXPECT_EQ(found->stream, dp);
  EXPECT_EQ(found->sequence, 4);
}

TEST_F(CallsTest, DamageInAPublishIsOfItsLinkWhereverTrainingStands) {
  record(2, {.sequence = 7, .step = 6, .completed = true});
  record(2, {.stream = "publish[0-3]", .step = 4, .phase = Phase::commit, .waited_for = 0, .damaged = true});
  drill_.add(EventKind::rank_ended, {.rank = 2, .step = 6, .phase = Phase::exchange, .a = 1, .detail = "corrupted"});
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, BlameKind::link);
  EXPECT_THAT(found->ranks, ElementsAre(0, 2));
  EXPECT_EQ(found->step, 4);
  EXPECT_EQ(found->phase, Phase::commit);
}

TEST_F(CallsTest, TheGuardOfAnAttemptIsThatOfTheLayoutItHad) {
  drill_.plan.recovery.layout = Layout{.dp = 2};  // without a guard; only behind a loss
  fire(FaultKind::drop_message, 3);
  record(0, {.waited_for = 2});
  for (const int rank : {1, 2, 3}) record(rank, {.waited_for = 0});
  end();
  drill_.start();
  drill_.add(EventKind::fault_fired, {.rank = 3, .step = 5, .phase = Phase::exchange, .a = 0});
  record(0, {.waited_for = 2});
  for (const int rank : {1, 2, 3}) record(rank, {.waited_for = 0});
  end();
  for (Event& event : drill_.events) {
    if (event.kind == EventKind::attempt_started && event.attempt == 1) event.name = drill_.tables.names.intern("dp=2");
  }
  expect_fail(drill_, judge_failures_are_attributed, "is explained by: attempt 2: ranks 0, 2 lost a message");
}

}  // namespace
}  // namespace firedrill

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faults/interposer/test_programs.h"

namespace firedrill::interposer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Disturbing : public Interposed {
 protected:
  // Two ranks that both keep the first all_reduce back.
  void plan_reorder(const std::string& options = "") {
    plan(R"({"reorder": {)" + options + R"(}, "at": {"rank": 0, "op": "all_reduce"}},
            {"reorder": {)" +
         options + R"(}, "at": {"rank": 1, "op": "all_reduce"}})");
  }
  // Runs the script on two ranks under plan_reorder, and expects that the calls stay in their order, for this reason.
  void expect_kept_in_order(const std::string& script, Reason reason, const std::string& detail = "") {
    const std::vector<Ended> ended = run_ranks(2, script);
    EXPECT_THAT(ended[0].out, HasSubstr("r0 ar:8 = 0")) << ended[0].err;
    EXPECT_EQ(calls_of(ring_of(0)).at(0), "all_reduce 8 seq 1");
    EXPECT_EQ(ring_of(0).faults.at(0).fired, 0U);
    EXPECT_EQ(ring_of(0).faults.at(0).last_event, FaultEvent::not_fired);
    EXPECT_EQ(ring_of(0).faults.at(0).reason, reason) << to_string(ring_of(0).faults.at(0).reason);
    EXPECT_THAT(journal(),
                AllOf(HasSubstr(R"({"event":"held","fault":0)"), HasSubstr(R"({"event":"not_fired","fault":0)"),
                      HasSubstr(std::string(to_string(reason))), HasSubstr("\"detail\":\"" + detail)));
  }
};

TEST_F(Disturbing, ASkippedCallNeverReachesNccl) {
  environment_["STANDIN_DEADLINE_MS"] = "300";
  plan(R"({"skip": {}, "at": {"rank": 1, "nth": 2, "op": "all_reduce"}})");
  const std::vector<Ended> ended = run_ranks(2, "comm ar:8 ar:4 ag:2");
  EXPECT_THAT(ended[1].out, AllOf(HasSubstr("r1 ar:4 = 0 -1 -1"), HasSubstr("r1 ag:2 = 5"))) << "rank 0 is in another";
  EXPECT_THAT(calls_of(ring_of(1)), ElementsAre("all_reduce 8 seq 1", "all_reduce 4 skipped", "all_gather 2 seq 2"));
  EXPECT_THAT(calls_of(ring_of(0)), ElementsAre("all_reduce 8 seq 1", "all_reduce 4 seq 2", "all_gather 2 seq 3"));
  EXPECT_EQ(ring_of(1).faults.at(0).fired, 1U);
  EXPECT_EQ(ring_of(0).faults.at(0).matched, 0U) << "the fault is rank 1's";
  EXPECT_THAT(journal(), HasSubstr(R"({"event":"fired","fault":0,)"));
}

TEST_F(Disturbing, AFaultStandsInTheRingBeforeTheCallItHits) {
  plan(R"({"delay": {"delay": "1ms"}, "at": {"rank": 0, "op": "all_gather"}})");
  start_client(1, "0", "comm ag:2").end();
  const RingDump ring = rings().at(0);
  ASSERT_EQ(ring.calls.size(), 3U);
  EXPECT_EQ(ring.calls[1].op, Op::fault);
  EXPECT_EQ(ring.calls[1].event, FaultEvent::fired);
  EXPECT_EQ(ring.calls[2].op, Op::all_gather);
  EXPECT_EQ(ring.calls[2].fault, 0);
  EXPECT_THAT(to_text(ring, 20), HasSubstr("fault 0 fired (comm"));
}

TEST_F(Disturbing, ADelayPutsTheCallOff) {
  plan(R"({"delay": {"delay": "200ms"}, "at": {"rank": 0, "op": "all_reduce"}})");
  run_ranks(2, "comm ar:8");
  const RingDump ring = ring_of(0);
  const auto time_of = [&](Op op) {
    for (const CallRecord& call : ring.calls) {
      if (call.op == op) return call.time;
    }
    return std::uint64_t{0};
  };
  EXPECT_GE(time_of(Op::all_reduce) - time_of(Op::fault), 200'000'000U);
  EXPECT_GE(ring_of(1).calls.back().duration, 100'000'000U) << "its peer waits for it";
}

TEST_F(Disturbing, ADelayAfterTheCallLetsThePeerGoOn) {
  plan(R"({"delay": {"delay": "200ms"}, "at": {"rank": 0, "op": "all_reduce", "when": "after"}})");
  const std::vector<Ended> ended = run_ranks(2, "comm ar:8");
  EXPECT_THAT(ended[0].out, HasSubstr("r0 ar:8 = 0 3 3"));
  Words ops;
  for (const RingDump ring = ring_of(0); const CallRecord& call : ring.calls) ops.emplace_back(to_string(call.op));
  EXPECT_THAT(ops, ElementsAre("comm_init", "all_reduce", "fault"));
}

TEST_F(Disturbing, ReorderedCallsReachNcclTheOtherWayRound) {
  plan_reorder();
  const std::vector<Ended> ended = run_ranks(2, "comm ar:8 ag:4 sync ar:2");
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_THAT(ended[static_cast<std::size_t>(rank)].out, HasSubstr("ag:4 = 0"));
    const RingDump ring = ring_of(rank);
    EXPECT_THAT(calls_of(ring), ElementsAre("all_gather 4 seq 1", "all_reduce 8 seq 2", "all_reduce 2 seq 3"));
    EXPECT_EQ(ring.faults.at(static_cast<std::size_t>(rank)).fired, 1U);
    EXPECT_EQ(ring.calls.back().call, 3U);
  }
}

TEST_F(Disturbing, OneRankThatReordersDoesNotFitItsPeer) {
  plan(R"({"reorder": {}, "at": {"rank": 0, "op": "all_reduce"}})");
  const std::vector<Ended> ended = run_ranks(2, "comm ar:8 ag:4");
  EXPECT_THAT(ended[1].out, HasSubstr("r1 ar:8 = 5"));
  EXPECT_THAT(calls_of(ring_of(0)), ElementsAre("all_gather 4 seq 1", "all_reduce 8 seq 2"));
}

TEST_F(Disturbing, CallsAreReorderedInsideAGroup) {
  plan_reorder();
  run_ranks(2, "comm gs ar:8 ag:4 ge");
  EXPECT_THAT(calls_of(ring_of(0)), ElementsAre("all_gather 4 seq 1", "all_reduce 8 seq 2"));
  EXPECT_EQ(ring_of(1).faults.at(1).fired, 1U);
}

TEST_F(Disturbing, WorkOnAnotherStreamDoesNotHinderAReorder) {
  plan_reorder();
  run_ranks(2, "comm ar:8 otherlaunch ag:4");
  EXPECT_EQ(ring_of(0).faults.at(0).fired, 1U);
}

TEST_F(Disturbing, ReorderDoesNotFireWhereTheProgramWaitsForTheStream) {
  plan_reorder();
  expect_kept_in_order("comm ar:8 sync ag:4", Reason::program_waited, "cudaStreamSynchronize");
}
TEST_F(Disturbing, ReorderDoesNotFireWhereTheThreadWaitsForAnotherStream) {
  plan_reorder();
  expect_kept_in_order("comm ar:8 othersync ag:4", Reason::program_waited, "cudaStreamSynchronize");
}
TEST_F(Disturbing, ReorderDoesNotFireWhereTheProgramWaitsForAnEvent) {
  plan_reorder();
  expect_kept_in_order("comm ar:8 evsync ag:4", Reason::program_waited, "cudaEventSynchronize");
}
TEST_F(Disturbing, ReorderDoesNotFireWhereTheProgramWaitsForTheDevice) {
  plan_reorder();
  expect_kept_in_order("comm ar:8 devsync ag:4", Reason::program_waited, "cudaDeviceSynchronize");
}
TEST_F(Disturbing, ReorderDoesNotFireWhereAnEventIsRecordedInTheStream) {
  plan_reorder();
  expect_kept_in_order("comm ar:8 record ag:4", Reason::program_waited, "cudaEventRecord");
}
TEST_F(Disturbing, ReorderDoesNotFireWhereAKernelFollowsInTheStream) {
  plan_reorder();
  expect_kept_in_order("comm ar:8 launch ag:4", Reason::program_waited, "cudaLaunchKernel");
}
TEST_F(Disturbing, ReorderDoesNotFireWhereTheProgramAsksForErrors) {
  plan_reorder();
  expect_kept_in_order("comm ar:8 error ag:4", Reason::program_waited, "ncclCommGetAsyncError");
}
TEST_F(Disturbing, ReorderDoesNotFireWhereAnotherCommunicatorIsUsed) {
  plan_reorder();
  expect_kept_in_order("comm comm:x use:0 ar:8 use:1 ag:4", Reason::other_communicator, "all_gather");
}
TEST_F(Disturbing, ReorderDoesNotFireWhereACommunicatorEnds) {
  plan_reorder();
  expect_kept_in_order("comm ar:8 destroy", Reason::other_communicator, "comm_destroy");
}
TEST_F(Disturbing, ReorderDoesNotFireWhereAGroupBegins) {
  plan_reorder();
  expect_kept_in_order("comm ar:8 gs ag:4 ge", Reason::group_boundary, "group start");
}
TEST_F(Disturbing, ReorderDoesNotFireWhereTheGroupEnds) {
  plan_reorder();
  expect_kept_in_order("comm gs ar:8 ge ag:4", Reason::group_boundary, "group end");
}
TEST_F(Disturbing, AKeptCallIsMadeWhereNothingFollows) {
  plan_reorder(R"("hold": "50ms")");
  Program zero = start_client(2, "0", "comm ar:8 pause");
  Program one = start_client(2, "1", "comm ar:8 pause");
  ASSERT_TRUE(zero.says("r0 ar:8"));
  ASSERT_TRUE(one.says("r1 ar:8"));
  while (ring_of(0).calls.size() < 4 || ring_of(0).calls.back().state != State::returned) std::this_thread::yield();
  EXPECT_EQ(ring_of(0).faults.at(0).reason, Reason::nothing_followed);
  EXPECT_THAT(calls_of(ring_of(0)), ElementsAre("all_reduce 8 seq 1"));
}
TEST_F(Disturbing, ReorderDoesNotFireWhereTheProgramEnds) {
  plan_reorder(R"("hold": "1h")");
  run_ranks(2, "comm ar:8");
  EXPECT_EQ(ring_of(0).faults.at(0).reason, Reason::program_ended);
  EXPECT_THAT(journal(), HasSubstr("the call that was kept back was never made"));
}
TEST_F(Disturbing, ReorderDoesNotFireWhereWaitsCannotBeSeen) {
  plan(R"({"reorder": {}, "at": {"rank": 0}})");
  const Ended ended = start_client(1, "0", "comm ag:8 ag:4", {FIREDRILL_CLIENT_STATIC}).end();
  EXPECT_THAT(ended.out, HasSubstr("r0 ag:8 = 0 1 1"));
  EXPECT_EQ(rings().at(0).faults.at(0).reason, Reason::waits_out_of_sight);
  EXPECT_THAT(calls_of(rings().at(0)), ElementsAre("all_gather 8 seq 1", "all_gather 4 seq 2"));
}

TEST_F(Disturbing, AWrongCountReachesNcclAndBothAreShown) {
  plan(R"({"wrong_count": {"count": 3}, "at": {"rank": 1, "op": "all_gather"}})");
  const std::vector<Ended> ended = run_ranks(2, "comm ag:8");
  EXPECT_THAT(ended[0].out, HasSubstr("r0 ag:8 = 5")) << "the counts do not fit";
  EXPECT_EQ(ring_of(1).calls.back().count, 3U);
  EXPECT_EQ(ring_of(1).calls.back().asked, 8U);
  EXPECT_THAT(to_text(ring_of(1).calls.back()), HasSubstr("count 3 (asked 8)"));
}

TEST_F(Disturbing, AWrongCountIsOneLessWhereThePlanDoesNotSay) {
  plan(R"({"wrong_count": {}, "at": {"rank": 0}})");
  start_client(1, "0", "comm ag:8").end();
  EXPECT_THAT(calls_of(rings().at(0)), ElementsAre("all_gather 7 seq 1"));
}

TEST_F(Disturbing, ACountThatWouldOverrunTheBuffersIsNotUsed) {
  plan(R"({"wrong_count": {"count": 8}, "at": {"rank": 0}}, {"wrong_count": {}, "at": {"rank": 0, "nth": 2}})");
  start_client(1, "0", "comm ag:8 ag:0").end();
  EXPECT_THAT(calls_of(rings().at(0)), ElementsAre("all_gather 8 seq 1", "all_gather 0 seq 2"));
  EXPECT_EQ(rings().at(0).faults.at(0).reason, Reason::count_not_below);
  EXPECT_EQ(rings().at(0).faults.at(1).reason, Reason::nothing_to_take);
}

TEST_F(Disturbing, AKillIsJournaledAndTheRingStays) {
  environment_["STANDIN_DEADLINE_MS"] = "300";
  plan(R"({"kill": {}, "at": {"rank": 1, "nth": 2, "op": "collective"}})");
  const std::vector<Ended> ended = run_ranks(2, "comm ar:8 ag:4 ar:2");
  EXPECT_EQ(ended[1].exit_code(), -SIGKILL);
  EXPECT_THAT(ended[1].out, AllOf(HasSubstr("r1 ar:8 = 0"), Not(HasSubstr("ag:4"))));
  EXPECT_EQ(ended[0].exit_code(), 0);
  const RingDump ring = ring_of(1);
  EXPECT_FALSE(ring.ended);
  EXPECT_EQ(ring.calls.back().op, Op::fault);
  EXPECT_THAT(calls_of(ring), ElementsAre("all_reduce 8 seq 1"));
  EXPECT_THAT(journal(), HasSubstr(R"("kind":"kill","rank":1,"op":"all_gather")"));
}

TEST_F(Disturbing, AKillAfterTheCallLeavesItsDataWithThePeer) {
  plan(R"({"kill": {}, "at": {"rank": 1, "op": "all_reduce", "when": "after"}})");
  const std::vector<Ended> ended = run_ranks(2, "comm ar:8");
  EXPECT_EQ(ended[1].exit_code(), -SIGKILL);
  EXPECT_THAT(ended[0].out, HasSubstr("r0 ar:8 = 0 3 3"));
}

TEST_F(Disturbing, AHungProcessStopsWholeAndGoesOnWhereItIsContinued) {
  plan(R"({"hang": {}, "at": {"rank": 0, "nth": 2}})");
  Program program = start_client(1, "0", "comm ar:8 ar:4 ar:2");
  ASSERT_TRUE(program.stops());
  EXPECT_THAT(program.out(), AllOf(HasSubstr("r0 ar:8 = 0"), Not(HasSubstr("ar:4"))));
  EXPECT_THAT(journal(), HasSubstr(R"("kind":"hang")"));
  program.signal(SIGCONT);
  EXPECT_THAT(program.end().out, HasSubstr("r0 ar:2 = 0"));
}

TEST_F(Disturbing, AStalledThreadLeavesTheOthersRunning) {
  environment_["STANDIN_DEADLINE_MS"] = "300";
  plan(R"({"stall": {}, "at": {"rank": 1, "nth": 2}})");
  Program program = start_client(2, "threads", "comm ar:8 ar:4 error");
  ASSERT_TRUE(program.says("r0 ar:4 = 2")) << "its peer's deadline passes";
  ASSERT_TRUE(program.says("r0 error = 2"));
  EXPECT_THAT(program.out(), Not(HasSubstr("r1 ar:4")));
  EXPECT_EQ(rings().at(0).faults.at(0).fired, 1U);
}

TEST_F(Disturbing, AFaultCanNameTheCommunicator) {
  plan(R"({"skip": {}, "at": {"rank": 0, "op": "all_gather", "comm": 2, "nth": 2}})");
  start_client(1, "0", "comm comm:x use:0 ag:8 ag:8 use:1 ag:4 ag:2").end();
  EXPECT_THAT(calls_of(rings().at(0)),
              ElementsAre("all_gather 8 seq 1", "all_gather 8 seq 2", "all_gather 4 seq 1", "all_gather 2 skipped"));
}

TEST_F(Disturbing, AFaultFiresAsOftenAsThePlanSays) {
  plan(R"({"skip": {}, "at": {"rank": 0, "op": "all_gather", "nth": 2}, "times": 2},
          {"skip": {}, "at": {"rank": 0, "op": "broadcast", "nth": 2}, "times": 0})");
  start_client(1, "0", "comm ag:1 ag:2 ag:3 ag:4 bc:1:0 bc:2:0 bc:3:0 bc:4:0").end();
  EXPECT_THAT(calls_of(rings().at(0)),
              ElementsAre("all_gather 1 seq 1", "all_gather 2 skipped", "all_gather 3 skipped", "all_gather 4 seq 2",
                          "broadcast 1 seq 3", "broadcast 2 skipped", "broadcast 3 skipped", "broadcast 4 skipped"));
}

TEST_F(Disturbing, AFaultFiresOnceARunHoweverOftenTheProgramIsStarted) {
  plan(R"({"kill": {}, "at": {"rank": 0, "attempt": "any"}})");
  EXPECT_EQ(start_client(1, "0", "comm ar:8").end().exit_code(), -SIGKILL);
  EXPECT_EQ(start_client(1, "0", "comm ar:8").end().exit_code(), 0);
  environment_["FIREDRILL_NCCL_DIR"] = (folder_ / "another").string();
  EXPECT_EQ(start_client(1, "0", "comm ar:8").end().exit_code(), -SIGKILL) << "another folder is another run";
}

TEST_F(Disturbing, AFaultOfALaterAttemptWaitsForIt) {
  plan(R"({"kill": {}, "at": {"rank": 0, "attempt": 2}})");
  EXPECT_EQ(start_client(1, "0", "comm ar:8").end().exit_code(), 0);
  environment_["FIREDRILL_ATTEMPT"] = "2";
  EXPECT_EQ(start_client(1, "0", "comm ar:8").end().exit_code(), -SIGKILL);
}

TEST_F(Disturbing, OfTwoFaultsAtOneCallTheSecondIsReported) {
  plan(R"({"skip": {}, "at": {"rank": 0}}, {"kill": {}, "at": {"rank": 0}})");
  EXPECT_EQ(start_client(1, "0", "comm ar:8").end().exit_code(), 0);
  EXPECT_EQ(rings().at(0).faults.at(0).fired, 1U);
  EXPECT_EQ(rings().at(0).faults.at(1).reason, Reason::another_fault);
}

TEST_F(Disturbing, AFaultThatWasNeverReachedIsReportedAtTheEnd) {
  plan(R"({"kill": {}, "at": {"rank": 0, "op": "all_reduce", "nth": 5}}, {"kill": {}, "at": {"rank": 3}})");
  start_client(1, "0", "comm ar:8").end();
  EXPECT_THAT(journal(),
              AllOf(HasSubstr(R"({"event":"not_fired","fault":0)"),
                    HasSubstr("1 matching calls, the fault was for number 5"), Not(HasSubstr("\"fault\":1"))));
  const Ended tool = start({FIREDRILL_RINGS, "--plan", plan_file(), (folder_ / "rings").string()}).end();
  EXPECT_EQ(tool.exit_code(), 4);
  EXPECT_THAT(tool.out, AllOf(HasSubstr("fault 0 kill rank 0 at all_reduce 5: not fired: process"),
                              HasSubstr("fault 1 kill rank 3 at call 1: not fired: no process had rank 3")));
}

TEST_F(Disturbing, TheToolShowsRingsAndFiredFaults) {
  plan(R"({"skip": {}, "at": {"rank": 0}}, {"kill": {}, "at": {"rank": 0, "nth": 9}, "may_not_fire": true})");
  start_client(1, "0", "comm ag:8 ag:4").end();
  const Ended tool = start({FIREDRILL_RINGS, "--plan", plan_file(), "--last", "3", (folder_ / "rings").string()}).end();
  EXPECT_EQ(tool.exit_code(), 0) << tool.err;
  EXPECT_THAT(tool.out, AllOf(HasSubstr("communicator 1"), HasSubstr("call 2 seq 1 count 4 float32"),
                              HasSubstr("fault 0 skip rank 0 at call 1: fired in process")));
  EXPECT_EQ(start({FIREDRILL_RINGS}).end().exit_code(), 1);
  EXPECT_EQ(start({FIREDRILL_RINGS, plan_file()}).end().exit_code(), 1) << "a plan is no ring";
}

TEST_F(Disturbing, ABadPlanEndsTheProgramBeforeItBegins) {
  plan(R"({"skip": {}, "at": {"rank": 0, "opp": "all_reduce"}})");
  const Ended ended = start_client(1, "0", "comm ar:8").end();
  EXPECT_EQ(ended.exit_code(), 1);
  EXPECT_EQ(ended.out, "");
  EXPECT_THAT(ended.err, AllOf(HasSubstr(plan_file()), HasSubstr("faults[0].at"), HasSubstr("did you mean `op`?")));
}

TEST_F(Disturbing, AMissingPlanEndsTheProgramBeforeItBegins) {
  environment_["FIREDRILL_PLAN"] = "/nowhere/plan.json";
  const Ended ended = start_client(1, "0", "comm ar:8").end();
  EXPECT_EQ(ended.exit_code(), 1);
  EXPECT_THAT(ended.err, HasSubstr("cannot read the plan /nowhere/plan.json"));
}

TEST_F(Disturbing, APlanWithoutAFolderForItsJournalIsRefused) {
  plan(R"({"skip": {}, "at": {"rank": 0}})");
  environment_.erase("FIREDRILL_NCCL_DIR");
  const Ended ended = start_client(1, "0", "comm ar:8").end();
  EXPECT_EQ(ended.exit_code(), 1);
  EXPECT_THAT(ended.err, HasSubstr("FIREDRILL_PLAN is set and FIREDRILL_NCCL_DIR is not"));
}

TEST_F(Disturbing, NothingIsDisturbedWithoutAPlan) {
  const std::vector<Ended> ended = run_ranks(2, "comm ar:8 ag:4");
  EXPECT_THAT(ended[0].out, AllOf(HasSubstr("r0 ar:8 = 0 3 3"), HasSubstr("r0 ag:4 = 0 1 1")));
  EXPECT_TRUE(ring_of(0).faults.empty());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "rings" / "faults.jsonl"));
}

}  // namespace
}  // namespace firedrill::interposer

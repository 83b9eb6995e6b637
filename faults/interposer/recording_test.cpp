#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faults/interposer/test_programs.h"

namespace firedrill::interposer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

class Recording : public Interposed {};

const std::string every_operation =
    "comm ar:8 max:8 bc:4:1 bcast:4:0 rd:4:1 ag:4 rs:4 a2a:4 gather:4:0 scatter:4:1 sync "
    "only:0:send:3:1 only:1:recv:3:0 finalize destroy";

TEST_F(Recording, ShowsEveryOperationOfBothRanksAlike) {
  const std::vector<Ended> ended = run_ranks(2, every_operation);
  EXPECT_THAT(ended[0].out, AllOf(HasSubstr("r0 ar:8 = 0 3 3"), HasSubstr("r0 rs:4 = 0 3 3")));
  EXPECT_THAT(ended[1].out, HasSubstr("r1 only:1:recv:3:0 = 0 1 1"));
  const RingDump zero = ring_of(0);
  const RingDump one = ring_of(1);
  Words collectives = {"all_reduce 8 seq 1", "all_reduce 8 seq 2", "broadcast 4 seq 3",      "broadcast 4 seq 4",
                       "reduce 4 seq 5",     "all_gather 4 seq 6", "reduce_scatter 4 seq 7", "all_to_all 4 seq 8",
                       "gather 4 seq 9",     "scatter 4 seq 10"};
  Words of_zero = collectives;
  of_zero.emplace_back("send 3 seq 1");
  collectives.emplace_back("recv 3 seq 1");
  EXPECT_EQ(calls_of(zero), of_zero);
  EXPECT_EQ(calls_of(one), collectives);
  EXPECT_TRUE(zero.ended);
  EXPECT_EQ(zero.comms.at(0).id, one.comms.at(0).id);
  EXPECT_EQ(one.comms.at(0).rank, 1);
  EXPECT_EQ(one.comms.at(0).size, 2);
  EXPECT_TRUE(one.comms.at(0).gone);
}

TEST_F(Recording, ShowsTheWholeFingerprint) {
  run_ranks(2, "comm max:8 rd:4:1 only:0:send:3:1 only:1:recv:3:0");
  const RingDump ring = ring_of(0);
  ASSERT_EQ(ring.calls.size(), 4U);
  const CallRecord& max = ring.calls[1];
  EXPECT_EQ(max.comm, ring.comms.at(0).id);
  EXPECT_EQ(type_name(max.dtype), "float32");
  EXPECT_EQ(reduction_name(max.redop), "max");
  EXPECT_EQ(max.peer, unknown);
  EXPECT_EQ(max.stream, 0x51U);
  EXPECT_EQ(max.rank, 0);
  EXPECT_EQ(max.size, 2);
  EXPECT_EQ(max.state, State::returned);
  EXPECT_EQ(result_name(max.result), "success");
  EXPECT_GT(max.duration, 0U);
  EXPECT_EQ(ring.calls[2].peer, 1);
  EXPECT_EQ(reduction_name(ring.calls[3].redop), "");
  EXPECT_EQ(ring.calls[3].peer, 1);
  EXPECT_THAT(to_text(ring.calls[2]), HasSubstr("reduce comm"));
  EXPECT_THAT(to_text(ring.calls[2]), HasSubstr("call 2 seq 2 count 4 float32 sum root 1 stream 51"));
}

TEST_F(Recording, KeepsTwoCommunicatorsApart) {
  run_ranks(2, "comm ar:8 comm:x ag:4 ag:4 use:0 ar:2 use:1 destroy use:0 destroy");
  const RingDump zero = ring_of(0);
  const RingDump one = ring_of(1);
  ASSERT_EQ(zero.comms.size(), 2U);
  EXPECT_NE(zero.comms[0].id, zero.comms[1].id);
  EXPECT_EQ(zero.comms[1].id, one.comms.at(1).id);
  EXPECT_EQ(zero.comms[0].calls, 2U);
  EXPECT_THAT(calls_of(one),
              ElementsAre("all_reduce 8 seq 1", "all_gather 4 seq 1", "all_gather 4 seq 2", "all_reduce 2 seq 2"));
}

TEST_F(Recording, KnowsSplitsAndShrinksByTheSameIdOnAllTheirRanks) {
  run_ranks(4, "comm split:2 ar:4 use:0 not:3:shrink:3 not:3:ar:4");
  std::map<std::uint64_t, int> members;
  for (const RingDump& ring : rings()) {
    for (const CommRecord& comm : ring.comms) {
      ++members[comm.id];
      EXPECT_EQ(comm.global_rank, ring.comms[0].rank) << "a child's rank in the job is its parent's";
      if (comm.made_by == Op::comm_split) {
        EXPECT_EQ(comm.rank, comm.global_rank / 2);
      }
      if (comm.made_by == Op::comm_shrink) {
        EXPECT_EQ(comm.size, 3);
      }
      if (comm.made_by != Op::comm_init) {
        EXPECT_EQ(comm.parent, ring.comms[0].id);
      }
    }
  }
  std::vector<int> sizes;
  for (const auto& [id, count] : members) sizes.push_back(count);
  EXPECT_THAT(sizes, testing::UnorderedElementsAre(4, 2, 2, 3));
}

TEST_F(Recording, NumbersGroupsAndKnowsCommunicatorsMadeInThem) {
  run_ranks(2, "gs comm comm:x ge gs ar:4 ar:8 ge ar:2");
  const RingDump ring = ring_of(1);
  ASSERT_EQ(ring.comms.size(), 2U);
  EXPECT_EQ(ring.comms[0].size, 2);
  EXPECT_EQ(ring.comms[0].made_by, Op::comm_init);
  std::vector<std::pair<std::string, std::uint64_t>> groups;
  for (const CallRecord& call : ring.calls) groups.emplace_back(to_string(call.op), call.group);
  EXPECT_THAT(groups, ElementsAre(std::pair("group_start", 1), std::pair("comm_init", 1), std::pair("comm_init", 1),
                                  std::pair("group_end", 1), std::pair("group_start", 2), std::pair("all_reduce", 2),
                                  std::pair("all_reduce", 2), std::pair("group_end", 2), std::pair("all_reduce", 0)));
}

TEST_F(Recording, KnowsTheRanksOfManyDevicesInOneThread) {
  const Ended ended = start_client(3, "all", "ar:4 ag:2").end();
  EXPECT_THAT(ended.out, HasSubstr("all ar:4 = 0 6"));
  const auto found = rings();
  ASSERT_EQ(found.size(), 1U);
  ASSERT_EQ(found[0].comms.size(), 3U);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(found[0].comms[static_cast<std::size_t>(rank)].global_rank, rank);
  EXPECT_EQ(calls_of(found[0]).size(), 6U) << "what ncclCommInitAll calls itself is not the program's";
}

TEST_F(Recording, KeepsThreadsApart) {
  const Ended ended = start_client(4, "threads", "comm ar:4 ag:2 ar:4 destroy").end();
  EXPECT_EQ(ended.exit_code(), 0) << ended.err;
  const auto found = rings();
  ASSERT_EQ(found.size(), 1U);
  std::map<std::uint32_t, Words> by_thread;
  for (const CallRecord& call : found[0].calls) {
    if (is_collective(call.op)) by_thread[call.thread].push_back(std::string(to_string(call.op)));
    EXPECT_EQ(call.state, State::returned);
  }
  EXPECT_EQ(by_thread.size(), 4U);
  for (const auto& [thread, ops] : by_thread) EXPECT_THAT(ops, ElementsAre("all_reduce", "all_gather", "all_reduce"));
}

TEST_F(Recording, CountsAnOperationOnceThatNcclMakesOfAnother) {
  run_ranks(2, "comm bcast:4:0");
  EXPECT_THAT(calls_of(ring_of(0)), ElementsAre("broadcast 4 seq 1"));
}

TEST_F(Recording, TheRingOutlivesAKilledProcessAndShowsTheCallItWasIn) {
  Program zero = start_client(2, "0", "comm ar:8 ag:4");
  Program one = start_client(2, "1", "comm ar:8 pause");
  ASSERT_TRUE(one.says("r1 ar:8 = 0"));
  ASSERT_TRUE(zero.says("r0 ar:8 = 0"));
  while (rings().size() < 2 || calls_of(ring_of(0)).size() < 2) std::this_thread::yield();
  zero.signal(SIGKILL);
  one.signal(SIGKILL);
  EXPECT_EQ(zero.end().exit_code(), -SIGKILL);
  one.end();
  const RingDump ring = ring_of(0);
  EXPECT_FALSE(ring.ended);
  EXPECT_THAT(calls_of(ring), ElementsAre("all_reduce 8 seq 1", "all_gather 4 seq 2"));
  EXPECT_EQ(ring.calls.back().state, State::entered) << "it waited for its peer inside NCCL";
  EXPECT_EQ(ring_of(1).calls.back().state, State::returned);
}

TEST_F(Recording, ShowsAbortsAndAChangedErrorOnce) {
  environment_["STANDIN_DEADLINE_MS"] = "100";
  run_ranks(2, "comm not:0:ag:2 not:1:ar:4 error error error abort");
  const RingDump ring = ring_of(1);
  Words ops;
  for (const CallRecord& call : ring.calls) ops.emplace_back(to_string(call.op));
  EXPECT_THAT(ops, ElementsAre("comm_init", "all_gather", "async_error", "comm_abort"));
  EXPECT_EQ(result_name(ring.calls[2].result), "invalid_usage");
  EXPECT_EQ(ring.comms.at(0).async_error, 5);
}

TEST_F(Recording, AForkedChildHasARingOfItsOwn) {
  const Ended ended = start_client(1, "0", "comm ar:4 fork ar:4").end();
  EXPECT_THAT(ended.out, HasSubstr("fork = 0"));
  const auto found = rings();
  ASSERT_EQ(found.size(), 2U);
  const bool first_is_parent = found[0].comms.at(0).calls == 2;
  EXPECT_EQ(found[first_is_parent ? 0 : 1].comms.at(0).calls, 2U);
  EXPECT_EQ(found[first_is_parent ? 1 : 0].comms.at(0).calls, 1U);
}

TEST_F(Recording, TakesTheRankInTheJobFromTheLauncher) {
  environment_["RANK"] = "5";
  environment_["TORCHELASTIC_RESTART_COUNT"] = "2";
  start_client(1, "0", "comm ar:4").end();
  const RingDump ring = rings().at(0);
  EXPECT_EQ(ring.process_rank, 5);
  EXPECT_EQ(ring.comms.at(0).global_rank, 5);
  EXPECT_EQ(ring.comms.at(0).rank, 0);
  EXPECT_EQ(ring.attempt, 3);
}

TEST_F(Recording, FindsAnNcclThatAPluginBringsAlong) {
  environment_["FIREDRILL_RANK"] = "0";
  const Ended ended = start_client(1, "0", "comm ar:4 sync", {FIREDRILL_LOADER, FIREDRILL_PLUGIN}).end();
  EXPECT_THAT(ended.out, HasSubstr("r0 ar:4 = 0 1 1")) << ended.err;
  EXPECT_THAT(calls_of(rings().at(0)), ElementsAre("all_reduce 4 seq 1"));
}

TEST_F(Recording, LeavesAProgramWithoutNcclAlone) {
  EXPECT_EQ(start({"/bin/true"}).end().exit_code(), 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "rings"));
}

TEST_F(Recording, HandsTheCallsToARealNccl) {
  const std::string library = FIREDRILL_REAL_NCCL;
  if (library.empty()) GTEST_SKIP() << "no libnccl.so.2 was found when this was configured";
  environment_["FIREDRILL_NCCL_LIBRARY"] = library;
  const Ended ended = start_client(1, "0", "gs ge comm").end();
  EXPECT_THAT(ended.out, AllOf(HasSubstr("r0 gs = 0"), HasSubstr("r0 ge = 0"))) << ended.err;
  Words ops;
  for (const RingDump ring = rings().at(0); const CallRecord& call : ring.calls) ops.emplace_back(to_string(call.op));
  EXPECT_THAT(ops, ElementsAre("group_start", "group_end", "comm_init"));
}

TEST_F(Recording, AFolderIsMeantFromWhereTheProgramStarts) {
  environment_["FIREDRILL_NCCL_DIR"] = std::filesystem::relative(folder_ / "rings");
  EXPECT_EQ(start_client(1, "0", "away comm ar:4").end().exit_code(), 0);
  EXPECT_THAT(calls_of(rings().at(0)), ElementsAre("all_reduce 4 seq 1"));
}

TEST_F(Recording, EndsAProgramWhoseRingCannotBeMade) {
  std::ofstream(folder_ / "rings") << "a file";
  const Ended ended = start_client(1, "0", "comm ar:4").end();
  EXPECT_EQ(ended.exit_code(), 1);
  EXPECT_THAT(ended.err, HasSubstr("set FIREDRILL_NCCL_DIR to a folder of your own"));
}

TEST_F(Recording, RefusesAnEnvironmentItCannotRead) {
  environment_["FIREDRILL_NCCL_RING"] = "many";
  const Ended ended = start_client(1, "0", "comm").end();
  EXPECT_EQ(ended.exit_code(), 1);
  EXPECT_THAT(ended.err, HasSubstr("FIREDRILL_NCCL_RING=many is no whole number"));
}

}  // namespace
}  // namespace firedrill::interposer

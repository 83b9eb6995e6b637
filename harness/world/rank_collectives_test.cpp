// Over what ranks talk, as a function of job, layout and GPUs; and where NCCL cannot be had, the words for it.
#include "harness/world/rank_collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "engine/train/device/job_compute.h"
#include "harness/world/pulsed.h"

namespace firedrill {
namespace {

Job on(Device device, Reduction collectives = Reduction::tree) {
  Job job;
  job.device = device;
  job.collectives = collectives;
  return job;
}

std::vector<std::string> names(const std::vector<NcclGroup>& groups) {
  std::vector<std::string> names;
  for (const NcclGroup& group : groups) names.push_back(group.group.name);
  return names;
}

TEST(WireOfRanks, IsNcclExactlyWhereEachRankHasAGpuOfItsOwn) {
  struct Case {
    Device device;
    int ranks;
    int gpus;
    Wire wire;
  };
  for (const Case& one : {Case{Device::cpu, 4, 8, Wire::tcp}, Case{Device::cuda, 4, 4, Wire::nccl},
                          Case{Device::cuda, 4, 8, Wire::nccl}, Case{Device::cuda, 1, 1, Wire::nccl},
                          Case{Device::cuda, 4, 3, Wire::tcp}, Case{Device::cuda, 4, 1, Wire::tcp}}) {
    const Result<Wire> wire = wire_of(on(one.device), one.ranks, one.gpus);
    ASSERT_TRUE(wire);
    EXPECT_EQ(*wire, one.wire) << one.ranks << " ranks, " << one.gpus << " GPUs";
  }
}

TEST(WireOfRanks, NativeSumsAreRefusedWhereRanksShareAGpu) {
  EXPECT_EQ(*wire_of(on(Device::cuda, Reduction::native), 2, 2), Wire::nccl);
  const Result<Wire> refused = wire_of(on(Device::cuda, Reduction::native), 4, 1);
  ASSERT_TRUE(refused.failed_with(Code::invalid_input));
  EXPECT_THAT(describe(refused.error()), testing::HasSubstr("1 GPUs for 4 ranks"));
  EXPECT_THAT(describe(refused.error()), testing::HasSubstr("collectives: tree"));
}

TEST(NativeSums, AreOfferedByTheProcessWorldToWholeStatesInOneLayout) {
  Plan plan;
  plan.job = on(Device::cuda, Reduction::native);
  plan.world = WorldKind::process;
  plan.layout = Layout{.dp = 2};
  EXPECT_TRUE(sums_are_offered(plan, 2));
  EXPECT_TRUE(sums_are_offered(plan, 1).failed_with(Code::invalid_input)) << "two ranks on one GPU";
  Plan sim = plan;
  sim.world = WorldKind::sim;
  EXPECT_THAT(describe(sums_are_offered(sim, 2).error()), testing::HasSubstr("world: process"));
  Plan sharded = plan;
  sharded.layout.zero = 2;
  EXPECT_THAT(describe(sums_are_offered(sharded, 2).error()), testing::HasSubstr("zero: 2"));
  Plan elastic = plan;
  elastic.recovery.layout = Layout{};
  EXPECT_THAT(describe(sums_are_offered(elastic, 2).error()), testing::HasSubstr("another layout"));
  elastic.job = on(Device::cpu);
  EXPECT_TRUE(sums_are_offered(elastic, 0)) << "the tree has the same bits in all";
}

// What a rank shows while it is in a call that goes through no transport.
TEST(PulsedCollectives, WaitForTheMemberBehindAndForAPeer) {
  class Looking final : public Collectives {
   public:
    explicit Looking(const Pulse& pulse) : pulse_(pulse) {}
    Result<Value> all_reduce(const Group&, std::span<const Value>, ReduceOp, const Call& call) override {
      return look(call);
    }
    Result<Value> reduce_scatter(const Group&, std::span<const Value>, ReduceOp, const Call& call) override {
      return look(call);
    }
    Result<Value> all_gather(const Group&, const Value&, const Call& call) override { return look(call); }
    Result<Value> broadcast(const Group&, const Value&, int, const Call& call) override { return look(call); }
    Status barrier(const Group&, const Call& call) override { return look(call).ok() ? Status() : Status(); }
    Result<Value> all_to_all(const Group&, std::span<const Value>, const Call& call) override { return look(call); }
    Status send(const Group&, int, const Value&, const Call& call) override {
      return look(call).ok() ? Status() : Status();
    }
    Result<Value> recv(const Group&, int, const Call& call) override { return look(call); }
    void abort(const Error&) override {}
    std::vector<int> seen;
    std::vector<Time> deadlines;

   private:
    Result<Value> look(const Call& call) {
      seen.push_back(pulse_.read().waits_for);
      deadlines.push_back(call.deadline);
      return Value();
    }
    const Pulse& pulse_;
  };
  Pulse pulse;
  Looking inner(pulse);
  PulsedCollectives pulsed(inner, pulse, std::chrono::seconds(3));
  const Group last{.id = 1, .name = "dp", .ranks = {1, 4, 6}, .lanes = {}, .me = 2};
  const Call call{.purpose = "x", .deadline = std::chrono::seconds(2)};
  (void)pulsed.all_reduce(last, {}, ReduceOp::sum, call);
  (void)pulsed.reduce_scatter(last, {}, ReduceOp::sum, call);
  (void)pulsed.all_gather(last, {}, call);
  (void)pulsed.broadcast(last, {}, 0, call);
  (void)pulsed.barrier(last, call);
  (void)pulsed.all_to_all(last, {}, call);
  EXPECT_EQ(inner.seen, std::vector<int>(6, 1)) << "behind the last is the first";
  (void)pulsed.send(last, 1, {}, call);
  (void)pulsed.recv(last, 1, call);
  EXPECT_EQ(inner.seen[6], 4);
  EXPECT_EQ(inner.seen[7], 4);
  for (const Time deadline : inner.deadlines) EXPECT_EQ(deadline, std::chrono::seconds(5)) << "behind the watchdog's";
  (void)pulsed.barrier({.id = 2, .name = "cp", .ranks = {6}, .lanes = {}, .me = 0}, call);
  EXPECT_EQ(inner.seen.back(), PulseReading::nobody);
  EXPECT_EQ(pulse.read().waits_for, PulseReading::nobody);
}

TEST(GroupsOverNccl, AreThoseWithSeveralMembersAndStagesCanSend) {
  Job job;
  job.lanes.dp = 4;
  EXPECT_THAT(names(nccl_groups(job, Layout{.dp = 1}, 0)), testing::IsEmpty());
  EXPECT_THAT(names(nccl_groups(job, Layout{.dp = 4}, 0)), testing::Contains("dp"));
  for (const NcclGroup& group : nccl_groups(job, Layout{.dp = 4}, 2)) EXPECT_FALSE(group.point_to_point);
  job.model.layers = 4;
  int streams = 0;
  for (const NcclGroup& group : nccl_groups(job, Layout{.dp = 2, .pp = 2}, 3)) streams += group.point_to_point ? 1 : 0;
  EXPECT_EQ(streams, 2) << "activations and gradients";
}

// Splitting a communicator takes all ranks: the i-th group of each must be of one kind, with one colour for each group
// and another for whoever is in none.
TEST(GroupsOverNccl, AreListedAlikeByAllRanksAndCutEachKindIntoDisjointGroups) {
  Job job;
  job.lanes = {.dp = 2, .tp = 2, .cp = 1};
  job.model = {.layers = 3, .width = 16, .heads = 2, .sequence = 16};
  job.model.tied_embedding = true;
  const Layout layout{.dp = 2, .tp = 2, .pp = 3};
  const std::vector<NcclGroup> first = nccl_groups(job, layout, 0);
  bool alone = false;
  for (std::size_t kind = 0; kind < first.size(); ++kind) {
    std::map<int, std::vector<int>> members;  // by colour: the lowest rank
    for (int rank = 0; rank < layout.world_size(); ++rank) {
      const std::vector<NcclGroup> groups = nccl_groups(job, layout, rank);
      ASSERT_EQ(groups.size(), first.size());
      const Group& group = groups[kind].group;
      EXPECT_EQ(groups[kind].point_to_point, first[kind].point_to_point);
      EXPECT_EQ(group.ranks[static_cast<std::size_t>(group.me)], rank);
      members[group.ranks[0]].push_back(rank);
      alone = alone || group.size() == 1;
    }
    for (int rank = 0; rank < layout.world_size(); ++rank) {
      const Group group = nccl_groups(job, layout, rank)[kind].group;
      EXPECT_EQ(members[group.ranks[0]], group.ranks) << group.name;
    }
  }
  EXPECT_TRUE(alone) << "the middle stages hold no tied weight";
}

TEST(GroupsOverNccl, TheSecondTaskHasOne) {
  Job job;
  job.lanes.dp = 4;
  EXPECT_EQ(nccl_publish_group(job, Layout{.dp = 4}, 1).size(), 1U);
  EXPECT_TRUE(nccl_publish_group(job, Layout{.dp = 1}, 0).empty());
}

#ifndef FIREDRILL_CUDA
TEST(NcclOfTheWorld, IsRefusedByABuildWithoutIt) {
  class NoStore final : public Store {
    Status set(std::string_view, std::string_view) override { return Error{.code = Code::internal, .message = "set"}; }
    Result<std::string> get(std::string_view, Time) override { return Error{.code = Code::internal, .message = "get"}; }
    Result<std::int64_t> add(std::string_view, std::int64_t) override {
      return Error{.code = Code::internal, .message = "add"};
    }
  };
  class NoClock final : public Clock {
    Time now() const override { return Time{0}; }
    Status sleep_until(Time) override { return {}; }
  };
  NoStore store;
  NoClock clock;
  const auto line = nccl_world(store, clock, {.key = "key", .rank = 1, .world_size = 2}, Time{0});
  ASSERT_TRUE(line.failed_with(Code::unavailable));
  EXPECT_THAT(describe(line.error()), testing::HasSubstr("build the preset cuda"));
}
#endif

TEST(GpusForAJob, AreNotLookedForOnBehalfOfOneOnCpus) { EXPECT_EQ(gpus_for(on(Device::cpu)), 0); }

}  // namespace
}  // namespace firedrill

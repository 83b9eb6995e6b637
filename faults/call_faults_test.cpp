// Faults of calls and messages: each is seen at the seam below.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faults/budget.h"
#include "faults/fake_world.h"
#include "faults/faulty_collectives.h"
#include "faults/faulty_transport.h"

namespace firedrill {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr Time deadline = std::chrono::hours(1);
constexpr Call call{.purpose = "grad", .deadline = deadline};

// Says of every call what reached it.
class TellingCollectives final : public Collectives {
 public:
  Result<Value> all_reduce(const Group&, std::span<const Value> lanes, ReduceOp op, const Call&) override {
    return tell(fmt::format("all_reduce {} {} {}", lanes[0].count(), to_string(lanes[0].dtype()), to_string(op)));
  }
  Result<Value> reduce_scatter(const Group&, std::span<const Value> lanes, ReduceOp op, const Call&) override {
    return tell(fmt::format("reduce_scatter {} {}", lanes[0].count(), to_string(op)));
  }
  Result<Value> all_gather(const Group&, const Value&, const Call&) override { return tell("all_gather"); }
  Result<Value> broadcast(const Group&, const Value&, int root, const Call&) override {
    return tell(fmt::format("broadcast root {}", root));
  }
  Status barrier(const Group&, const Call& made) override {
    return tell(fmt::format("barrier {}", made.purpose)), Status();
  }
  Result<Value> all_to_all(const Group&, std::span<const Value>, const Call&) override { return tell("all_to_all"); }
  Status send(const Group&, int peer, const Value& value, const Call&) override {
    return tell(fmt::format("send to {} {}", peer, value.text())), Status();
  }
  Result<Value> recv(const Group&, int, const Call&) override { return tell("recv"); }
  void abort(const Error& reason) override { calls.push_back("abort: " + reason.message); }

  std::vector<std::string> calls;

 private:
  Value tell(std::string text) { return calls.push_back(std::move(text)), Value::copy_of("result"); }
};

// Rank 2 of four, with one planned fault.
struct Rank {
  explicit Rank(FaultSpec fault) : plan{std::move(fault)} {
    for (int i = 0; i < 4; ++i) {
      group.ranks.push_back(i);
      group.lanes.push_back({.begin = i, .end = i + 1});
    }
  }
  Result<Value> reduce() { return collectives.all_reduce(group, lanes, ReduceOp::sum, call); }

  std::vector<FaultSpec> plan;
  Position position{.attempt = 1, .rank = 2, .step = 5, .phase = Phase::exchange};
  Group group{.id = 1, .name = "dp", .ranks = {}, .lanes = {}, .me = 2};
  std::vector<Value> lanes = {Value::copy_of(std::vector<float>{1, 2, 3})};
  FakeWorld world;
  Injector injector{plan, {}, position, world};
  TellingCollectives inner;
  FaultyCollectives collectives{inner, injector};
  CountingTransport wire;
  FaultyTransport transport{wire, injector};
};

FaultSpec fault(FaultKind kind, int nth = 1) { return {.kind = kind, .at = {.rank = 2, .nth = nth}}; }

TEST(CallFaults, ASkippedCallIsNotMadeAndTheRankGoesOnWithItsOwnPart) {
  Rank rank(fault(FaultKind::skip_call));
  const Result<Value> result = rank.reduce();
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->same_as(rank.lanes[0]));
  EXPECT_THAT(rank.inner.calls, IsEmpty());
  EXPECT_TRUE(rank.reduce());
  EXPECT_THAT(rank.inner.calls, ElementsAre("all_reduce 3 f32 sum"));
  EXPECT_EQ(rank.world.journaled.size(), 1U);
}

TEST(CallFaults, SkippedCallsOfEachOperationHaveAResultOfItsShape) {
  Rank gather(fault(FaultKind::skip_call));
  EXPECT_EQ(gather.collectives.all_gather(gather.group, gather.lanes[0], call)->parts().size(), 4U);
  Rank scatter(fault(FaultKind::skip_call));
  EXPECT_TRUE(scatter.collectives.reduce_scatter(scatter.group, scatter.lanes, ReduceOp::sum, call));
  Rank barrier(fault(FaultKind::skip_call));
  EXPECT_TRUE(barrier.collectives.barrier(barrier.group, call));
  Rank all(fault(FaultKind::skip_call));
  EXPECT_EQ(all.collectives.all_to_all(all.group, std::vector<Value>(4, all.lanes[0]), call)->parts().size(), 4U);
  for (const Rank* rank : {&gather, &scatter, &barrier, &all}) EXPECT_THAT(rank->inner.calls, IsEmpty());
}

TEST(CallFaults, ADoubledCallIsMadeTwice) {
  Rank rank(fault(FaultKind::duplicate_call, 2));
  EXPECT_TRUE(rank.collectives.barrier(rank.group, call));
  EXPECT_TRUE(rank.reduce());
  EXPECT_THAT(rank.inner.calls, ElementsAre("barrier grad", "all_reduce 3 f32 sum", "all_reduce 3 f32 sum"));
}

TEST(CallFaults, WrongArgumentsReachTheSeam) {
  const auto reduced = [](FaultKind kind) {
    Rank rank(fault(kind));
    EXPECT_TRUE(rank.collectives.barrier(rank.group, call)) << "it is about no barrier";
    EXPECT_TRUE(rank.reduce());
    return rank.inner.calls.back();
  };
  EXPECT_EQ(reduced(FaultKind::wrong_count), "all_reduce 2 f32 sum");
  EXPECT_EQ(reduced(FaultKind::wrong_dtype), "all_reduce 3 i64 sum");
  EXPECT_EQ(reduced(FaultKind::wrong_reduce_op), "all_reduce 3 f32 max");
  Rank root(fault(FaultKind::wrong_root));
  EXPECT_TRUE(root.reduce());
  EXPECT_TRUE(root.collectives.broadcast(root.group, root.lanes[0], 3, call));
  EXPECT_THAT(root.inner.calls, ElementsAre("all_reduce 3 f32 sum", "broadcast root 0"));
}

TEST(CallFaults, ACallAloneInItsGroupIsNotCounted) {
  Rank rank(fault(FaultKind::skip_call));
  rank.group = {.id = 1, .name = "dp", .ranks = {2}, .lanes = {{.begin = 0, .end = 1}}, .me = 0};
  EXPECT_TRUE(rank.reduce());
  EXPECT_THAT(rank.inner.calls, ElementsAre("all_reduce 3 f32 sum"));
  EXPECT_THAT(rank.world.journaled, IsEmpty());
}

TEST(CallFaults, TwoCallsChangePlacesAndThatIsJournaledWhenItHappens) {
  Rank rank(fault(FaultKind::reorder_calls));
  EXPECT_TRUE(rank.collectives.send(rank.group, 1, Value::copy_of("a"), call));
  EXPECT_THAT(rank.inner.calls, IsEmpty());
  EXPECT_THAT(rank.world.journaled, IsEmpty()) << "so far nothing has changed places";
  EXPECT_TRUE(rank.collectives.send(rank.group, 3, Value::copy_of("b"), call));
  EXPECT_THAT(rank.inner.calls, ElementsAre("send to 3 b", "send to 1 a"));
  EXPECT_EQ(rank.world.journaled.size(), 1U);
}

TEST(CallFaults, ACallThatTheRankWaitsForIsMadeInItsPlaceAndNothingFires) {
  Rank rank(fault(FaultKind::reorder_calls));
  EXPECT_TRUE(rank.reduce());
  EXPECT_THAT(rank.inner.calls, ElementsAre("all_reduce 3 f32 sum"));
  EXPECT_THAT(rank.world.journaled, IsEmpty());
}

TEST(CallFaults, ARankThatGivesUpAbortsWhatIsUnderItAndSaysSo) {
  Rank rank(fault(FaultKind::early_abort));
  const Result<Value> result = rank.reduce();
  ASSERT_TRUE(result.failed_with(Code::aborted));
  EXPECT_TRUE(result.error().injected);
  EXPECT_THAT(rank.inner.calls, ElementsAre("abort: this rank gave up by a planned fault"));
}

TEST(MessageFaults, AreSeenOnTheWire) {
  const auto send = [](Rank& rank) { return rank.transport.send(1, 7, rank.lanes[0], deadline); };
  Rank dropped(fault(FaultKind::drop_message));
  EXPECT_TRUE(send(dropped));
  EXPECT_EQ(dropped.wire.sends, 0);
  Rank doubled(fault(FaultKind::duplicate_message));
  EXPECT_TRUE(send(doubled));
  EXPECT_EQ(doubled.wire.sends, 2);
  Rank late(fault(FaultKind::late_message));
  EXPECT_TRUE(send(late));
  EXPECT_EQ(late.wire.sends, 0);
  EXPECT_THAT(late.world.late, ElementsAre("1 tag 7"));
  FaultSpec slow = fault(FaultKind::delay_message);
  slow.delay = std::chrono::milliseconds(5);
  Rank delayed(slow);
  EXPECT_TRUE(send(delayed));
  EXPECT_EQ(delayed.world.time, std::chrono::milliseconds(5));
  EXPECT_EQ(delayed.wire.sends, 1);
}

TEST(MessageFaults, OfOnePeerPassTheOthersBy) {
  FaultSpec drop = fault(FaultKind::drop_message);
  drop.peer = 3;
  Rank rank(drop);
  EXPECT_TRUE(rank.transport.send(1, 7, rank.lanes[0], deadline));
  EXPECT_EQ(rank.wire.sends, 1);
  EXPECT_TRUE(rank.transport.send(3, 7, rank.lanes[0], deadline));
  EXPECT_EQ(rank.wire.sends, 1);
}

TEST(LinkFaults, TroubleTheLinksThatTheyName) {
  const auto links = [](FaultSpec spec) {
    Rank rank(std::move(spec));
    EXPECT_TRUE(rank.reduce());
    return rank.world.links;
  };
  EXPECT_THAT(links(fault(FaultKind::partition)), ElementsAre("0>1 cut", "1>0 cut", "0>2 cut", "2>0 cut"));
  FaultSpec one_way = fault(FaultKind::partition);
  one_way.one_way = true;
  EXPECT_THAT(links(one_way), ElementsAre("0>1 cut", "0>2 cut"));
  FaultSpec slow = fault(FaultKind::slow_link);
  slow.peer = 0;
  EXPECT_THAT(links(slow), ElementsAre("2>0", "0>2"));
  EXPECT_EQ(links(fault(FaultKind::flaky_link)).size(), 4U);
}

TEST(CallFaultMistakes, OptionsAreChecked) {
  const Job job{.lanes = {.dp = 4}, .steps = 12};
  const auto mistakes = [&job](const FaultSpec& spec, const Layout& layout = {.dp = 4}) {
    return mistakes_in_fault(spec, job, layout);
  };
  EXPECT_THAT(mistakes(fault(FaultKind::skip_call)), IsEmpty());
  FaultSpec self = fault(FaultKind::drop_message);
  self.peer = 2;
  EXPECT_THAT(mistakes(self), ElementsAre(StartsWith("drop_message.peer is 2")));
  EXPECT_THAT(mistakes(fault(FaultKind::slow_link)), ElementsAre(StartsWith("slow_link.delay")));
  FaultSpec flaky = fault(FaultKind::flaky_link);
  flaky.delay = std::chrono::milliseconds(1);
  flaky.every = 1;
  flaky.group = "rows";
  EXPECT_THAT(mistakes(flaky), ElementsAre(StartsWith("flaky_link.every"), StartsWith("flaky_link.group")));
  FaultSpec in_forward = fault(FaultKind::skip_call);
  in_forward.at.phase = Phase::forward;
  EXPECT_THAT(mistakes(in_forward), ElementsAre(HasSubstr("that phase has none")));
  EXPECT_THAT(mistakes(in_forward, {.dp = 2, .pp = 2}), IsEmpty());
  FaultSpec of_a_message = fault(FaultKind::skip_call);
  of_a_message.at.op = SeamOp::send;
  EXPECT_THAT(mistakes(of_a_message), ElementsAre(HasSubstr("skip_call is about collective calls")));
}

TEST(CallFaults, WhatTheyHitIsJournaledInWords) {
  Group group{.id = 1, .name = "pp", .ranks = {1, 5}, .lanes = {}, .me = 1};
  CollectiveCall made{.op = CollectiveOp::recv, .group = group, .peer = 0, .sequence = 3, .purpose = "activation"};
  EXPECT_EQ(words_of({.op = SeamOp::collective, .collective = &made}), "pp[1>5] call 3 recv activation");
  MessageCall message{.peer = 3};
  EXPECT_EQ(words_of({.op = SeamOp::send, .message = &message}), "message to rank 3");
  EXPECT_EQ(words_of({.op = SeamOp::file, .path = "shards/1"}), "shards/1");
}

}  // namespace
}  // namespace firedrill

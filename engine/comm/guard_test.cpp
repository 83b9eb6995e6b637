#include "engine/comm/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "engine/comm/collectives_over_transport.h"
#include "engine/comm/test_rank.h"

namespace firedrill {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// One rank's guarded collectives and all under them.
struct Rank {
  Rank(TestTransport::Shared& shared, int number, int ranks, Guard mode)
      : position{.attempt = 1, .rank = number, .step = 4, .phase = Phase::exchange},
        transport(shared, number, ranks),
        noted(transport),
        plain(noted, compute, position, observer),
        guard(plain, mode, {.position = position, .observer = observer, .waits = noted}) {}
  Position position;
  NoteObserver observer;
  DirectCompute compute;
  TestTransport transport;
  NotedTransport noted;
  TransportCollectives plain;
  GuardedCollectives guard;
};

Group group_of(int me, int size) {
  Group group{.id = 1, .name = "dp", .ranks = {}, .lanes = {}, .me = me};
  for (int i = 0; i < size; ++i) {
    group.ranks.push_back(i);
    group.lanes.push_back({.begin = i, .end = i + 1});
  }
  return group;
}

constexpr Call call_for(std::string_view purpose) { return {.purpose = purpose, .deadline = std::chrono::hours(1)}; }

// What every rank of three gets to hear when each does what `act` says.
std::vector<std::string> messages_of(const std::function<Status(Rank&, const Group&)>& act) {
  TestTransport::Shared shared;
  std::vector<std::string> messages(3);
  run_threads(3, [&](int number) {
    Rank rank(shared, number, 3, Guard::check);
    const Status ended = act(rank, group_of(number, 3));
    messages[static_cast<std::size_t>(number)] = ended ? "" : ended.error().message;
    EXPECT_TRUE(ended || ended.failed_with(Code::mismatch)) << describe(ended.error());
  });
  return messages;
}

Status reduce(Rank& rank, const Group& group, std::size_t count, ReduceOp op, std::string_view purpose) {
  const std::vector<Value> lanes = {Value::copy_of(std::vector<float>(count))};
  const Result<Value> result = rank.guard.all_reduce(group, lanes, op, call_for(purpose));
  return result ? Status() : Status(result.error());
}

void expect_all(const std::vector<std::string>& messages, std::string_view text) {
  for (const std::string& message : messages) EXPECT_THAT(message, HasSubstr(std::string(text)));
}

TEST(Guard, TwoBarriersOfAnotherPurposeDisagreeOnEveryMember) {
  const auto messages = messages_of([](Rank& rank, const Group& group) {
    return rank.guard.barrier(group, call_for(group.me == 2 ? "end" : "save.done"));
  });
  expect_all(messages, "call 0 of dp[0-2], barrier save.done at step 4: rank 2 has purpose end instead of save.done");
}

TEST(Guard, EachFieldThatDiffersIsNamed) {
  expect_all(messages_of([](Rank& rank, const Group& group) {
               return reduce(rank, group, group.me == 1 ? 3 : 4, ReduceOp::sum, "grad");
             }),
             "rank 1 has count 3 instead of 4");
  expect_all(messages_of([](Rank& rank, const Group& group) {
               return reduce(rank, group, 4, group.me == 0 ? ReduceOp::max : ReduceOp::sum, "grad");
             }),
             "rank 0 has reduce operation max instead of sum");
  expect_all(messages_of([](Rank& rank, const Group& group) -> Status {
               const Result<Value> result =
                   rank.guard.broadcast(group, Value::copy_of("x"), group.me == 1 ? 1 : 0, call_for("choice"));
               return result ? Status() : Status(result.error());
             }),
             "rank 1 has root 1 instead of 0");
  expect_all(messages_of([](Rank& rank, const Group& group) {
               if (group.me == 2) return rank.guard.barrier(group, call_for("grad"));
               return reduce(rank, group, 4, ReduceOp::sum, "grad");
             }),
             "rank 2 has operation barrier instead of all_reduce");
  expect_all(messages_of([](Rank& rank, const Group& group) -> Status {
               const Value number =
                   group.me == 1 ? Value::copy_of(std::vector<std::int64_t>{1}) : Value::copy_of(std::vector<float>{1});
               const std::vector<Value> lanes = {number};
               const Result<Value> result = rank.guard.all_reduce(group, lanes, ReduceOp::sum, call_for("grad"));
               return result ? Status() : Status(result.error());
             }),
             "rank 1 has type i64 instead of f32");
}

TEST(Guard, RankThatIsAStepAheadIsNotTakenForOneInTheSameCall) {
  const auto messages = messages_of([](Rank& rank, const Group& group) {
    if (group.me == 2) rank.position.step = 5;
    return reduce(rank, group, 4, ReduceOp::sum, "grad");
  });
  expect_all(messages, "rank 2 has step 5 instead of 4");
}

TEST(Guard, ReceiverSeesThatASendWasLeftOut) {
  TestTransport::Shared shared;
  run_threads(2, [&](int number) {
    Rank rank(shared, number, 2, Guard::check);
    const Group group = group_of(number, 2);
    const Value value = Value::copy_of("activation");
    if (number == 0) {
      EXPECT_TRUE(rank.guard.send(group, 1, value, call_for("activation")));
      EXPECT_TRUE(rank.guard.send(group, 1, value, call_for("gradient")));
      return;
    }
    EXPECT_TRUE(rank.guard.recv(group, 0, call_for("activation")));
    const Result<Value> second = rank.guard.recv(group, 0, call_for("activation"));
    ASSERT_TRUE(second.failed_with(Code::mismatch));
    EXPECT_THAT(second.error().message, HasSubstr("rank 0 has purpose gradient instead of activation"));
    rank.guard.finish(false);
    EXPECT_EQ(rank.observer.of(EventKind::call_record).back().c, -1);  // it looked at rank 0
  });
}

TEST(Guard, CallsOfAStepHaveOneDigestOnAllMembers) {
  TestTransport::Shared shared;
  std::vector<std::vector<Event>> told(2);
  run_threads(2, [&](int number) {
    Rank rank(shared, number, 2, Guard::record);
    const Group group = group_of(number, 2);
    EXPECT_TRUE(reduce(rank, group, 4, ReduceOp::sum, "grad"));
    EXPECT_TRUE(rank.guard.barrier(group, call_for("save")));
    rank.position.step = 5;
    EXPECT_TRUE(reduce(rank, group, 4, ReduceOp::sum, "grad"));
    rank.guard.finish(true);
    told[static_cast<std::size_t>(number)] = rank.observer.of(EventKind::calls);
    EXPECT_TRUE(rank.observer.of(EventKind::call_record).empty());
  });
  for (const auto& events : told) {
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[0].step, 4);
    EXPECT_EQ(events[0].a, 2);
    EXPECT_EQ(events[1].step, 5);
    EXPECT_EQ(events[1].a, 1);
  }
  EXPECT_EQ(told[0][0].digest, told[1][0].digest);
  EXPECT_EQ(told[0][1].digest, told[1][1].digest);
  EXPECT_NE(told[0][0].digest, told[0][1].digest);
}

TEST(Guard, RecordsSayWhatWasCompletedAndForWhomTheLastCallWaited) {
  TestTransport::Shared shared;
  Rank rank(shared, 0, 2, Guard::record);
  rank.transport.abort(Error{.code = Code::aborted, .message = "enough"});
  const Status ended = reduce(rank, group_of(0, 2), 4, ReduceOp::sum, "grad");
  EXPECT_TRUE(ended.failed_with(Code::aborted));
  rank.position.step = 9;  // the record keeps its own
  rank.guard.finish(false);
  const std::vector<Event> records = rank.observer.of(EventKind::call_record);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(rank.observer.text(records[0].name), "dp[0-1]");
  EXPECT_EQ(rank.observer.text(records[0].detail), "all_reduce f32 sum grad");
  EXPECT_EQ(records[0].step, 4);
  EXPECT_EQ(records[0].phase, Phase::exchange);
  EXPECT_EQ(records[0].a, 0);
  EXPECT_EQ(records[0].b, 4);
  EXPECT_EQ(records[0].c, -2);  // it waited for rank 1
}

TEST(Guard, RecordOfACallOnItsWaySaysThatItWasCompared) {
  TestTransport::Shared shared;
  std::vector<std::int64_t> standings(2);
  run_threads(2, [&](int number) {
    Rank rank(shared, number, 2, Guard::check);
    const Group group = group_of(number, 2);
    const std::vector<Value> lanes = {Value::copy_of(std::array<float, 2>{1.0F, 2.0F})};
    const auto started = rank.guard.start_all_reduce(group, lanes, ReduceOp::sum, call_for("grad"));
    EXPECT_TRUE(started);
    rank.guard.finish(false);
    standings[static_cast<std::size_t>(number)] = rank.observer.of(EventKind::call_record).front().c;
  });
  EXPECT_THAT(standings, ElementsAre(2, 2));
}

TEST(Guard, RankThatGivesUpTellsWhereItDid) {
  TestTransport::Shared shared;
  Rank rank(shared, 0, 1, Guard::record);
  EXPECT_TRUE(rank.guard.barrier(group_of(0, 1), call_for("tick")));
  rank.position.phase = Phase::validate;
  rank.guard.abort(Error{.code = Code::aborted, .message = "enough"});
  rank.position = {.attempt = 1, .rank = 0, .step = 9, .phase = Phase::none};
  rank.guard.finish(false);
  const std::vector<Event> records = rank.observer.of(EventKind::call_record);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].a, -1);
  EXPECT_EQ(records[1].step, 4);
  EXPECT_EQ(records[1].phase, Phase::validate);
}

std::vector<std::string> divergences_of(const Rank& rank) {
  std::vector<std::string> told;
  for (const Event& event : rank.observer.of(EventKind::divergence)) {
    told.push_back(fmt::format("{}: {} call {} {}, step {}", event.b, rank.observer.text(event.name), event.a,
                               rank.observer.text(event.detail), event.step));
  }
  return told;
}

// A rank alone issues these calls, whose purposes are letters.
void issue(Rank& rank, Phase phase, std::string_view purposes) {
  rank.position.phase = phase;
  for (std::size_t i = 0; i < purposes.size(); ++i)
    EXPECT_TRUE(rank.guard.barrier(group_of(0, 1), call_for(purposes.substr(i, 1))));
}

// The same in each step.
std::vector<std::string> told_of_steps(const std::vector<std::string_view>& steps, bool gives_up) {
  TestTransport::Shared shared;
  Rank rank(shared, 0, 1, Guard::record);
  for (const std::string_view calls : steps) {
    ++rank.position.step;
    issue(rank, Phase::exchange, calls);
  }
  if (gives_up) rank.guard.abort(Error{.code = Code::aborted, .message = "enough"});
  rank.guard.finish(false);
  return divergences_of(rank);
}

TEST(Guard, RankThatGivesUpTellsWhatWasDue) {
  EXPECT_THAT(told_of_steps({"abc", "ab"}, true), ElementsAre("0: dp[0] call 5 barrier c, step 6"));
  EXPECT_THAT(told_of_steps({"ab"}, true), IsEmpty());  // it cannot know
}

TEST(Guard, RankThatGivesUpAheadOfTheFirstCallOfAStepTellsIt) {
  EXPECT_THAT(told_of_steps({"abc", "abc", ""}, true), ElementsAre("0: dp[0] call 6 barrier a, step 7"));
}

TEST(Guard, StepThatDivergesIsTold) {
  EXPECT_THAT(told_of_steps({"abc", "abc"}, false), IsEmpty());
  EXPECT_THAT(told_of_steps({"abc", "ac"}, false),
              ElementsAre("1: dp[0] call 4 barrier b, step 6", "2: dp[0] call 4 barrier c, step 6"));
  EXPECT_THAT(told_of_steps({"abc", "abbc"}, false),
              ElementsAre("1: dp[0] call 5 barrier c, step 6", "3: dp[0] call 5 barrier b, step 6"));
  EXPECT_THAT(told_of_steps({"abc", "ab", "abc"}, false), ElementsAre("1: dp[0] call 5 barrier c, step 6"));
  EXPECT_THAT(told_of_steps({"abc", "ac", "abc", "abc", "abc"}, false), IsEmpty());  // of long ago
}

TEST(Guard, BothThatDivergedLatelyAreTold) {
  EXPECT_THAT(told_of_steps({"abc", "ac", "abxc"}, false),
              ElementsAre("1: dp[0] call 4 barrier b, step 6", "2: dp[0] call 4 barrier c, step 6",
                          "1: dp[0] call 7 barrier c, step 7", "2: dp[0] call 7 barrier x, step 7"));
}

TEST(Guard, CallsOfAPublishHaveAnOrderOfTheirOwn) {
  TestTransport::Shared shared;
  Rank rank(shared, 0, 1, Guard::record);
  for (const std::string_view publish : {"ocv", "", "ocv", "", "ocvv"}) {
    ++rank.position.step;
    issue(rank, Phase::exchange, "ab");
    issue(rank, Phase::save, publish);
  }
  rank.guard.finish(false);
  EXPECT_THAT(divergences_of(rank), ElementsAre("3: dp[0] call 19 barrier v, step 9"));
}

TEST(Guard, ACallThatASaveFindsLeftOutIsTold) {
  TestTransport::Shared shared;
  Rank rank(shared, 0, 1, Guard::record);
  issue(rank, Phase::exchange, "abc");
  ++rank.position.step;
  issue(rank, Phase::exchange, "ab");
  issue(rank, Phase::save, "s");
  rank.guard.finish(false);
  EXPECT_THAT(divergences_of(rank), ElementsAre("1: dp[0] call 5 barrier c, step 5"));
}

TEST(Guard, RecordSaysThatWhatCameWasDamaged) {
  class Corrupting final : public ForwardingTransport {
   public:
    using ForwardingTransport::ForwardingTransport;
    Result<Value> recv(int, Tag, Time) override { return Error{.code = Code::corrupted, .message = "changed"}; }
  };
  TestTransport::Shared shared;
  Rank rank(shared, 0, 2, Guard::record);
  Corrupting corrupting(rank.transport);
  NotedTransport noted(corrupting);
  TransportCollectives plain(noted, rank.compute, rank.position, rank.observer);
  GuardedCollectives guard(plain, Guard::record,
                           {.position = rank.position, .observer = rank.observer, .waits = noted});
  EXPECT_TRUE(guard.recv(group_of(0, 2), 1, call_for("activation")).failed_with(Code::corrupted));
  guard.finish(false);
  const std::vector<Event> records = rank.observer.of(EventKind::call_record);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].c, -2 - 131072);
}

TEST(Guard, RingKeepsTheLastCallsOnly) {
  TestTransport::Shared shared;
  Rank rank(shared, 0, 1, Guard::record);
  const int calls = static_cast<int>(GuardedCollectives::ring_capacity) + 10;
  for (int i = 0; i < calls; ++i) EXPECT_TRUE(rank.guard.barrier(group_of(0, 1), call_for("tick")));
  rank.guard.finish(false);
  const std::vector<Event> records = rank.observer.of(EventKind::call_record);
  ASSERT_EQ(records.size(), GuardedCollectives::ring_capacity);
  EXPECT_EQ(records.front().a, 10);
  EXPECT_EQ(records.back().a, calls - 1);
}

TEST(CallStreams, NamesListTheRanksAndAreReadBack) {
  const auto name = [](std::vector<int> ranks) { return stream_of(Group{.name = "g", .ranks = ranks, .lanes = {}}); };
  EXPECT_EQ(name({0, 1, 2, 3}), "g[0-3]");
  EXPECT_EQ(name({1, 5, 9}), "g[1-9/4]");
  EXPECT_EQ(name({0, 1, 8, 9}), "g[0-1,8-9]");
  EXPECT_EQ(name({2, 6}), "g[2,6]");
  EXPECT_EQ(name({7}), "g[7]");
  for (const std::vector<int>& ranks :
       {std::vector<int>{0, 1, 2, 3}, {1, 5, 9}, {0, 1, 8, 9}, {2, 6}, {7}, {0, 2, 4, 5}, {3, 4, 6}}) {
    EXPECT_EQ(ranks_of_stream(name(ranks)), ranks);
  }
  EXPECT_THAT(ranks_of_stream(stream_of(group_of(1, 3), 2, 0)), ElementsAre(2, 0));
  for (const char* wrong : {"", "dp", "dp[", "dp[]", "dp[1-]", "dp[0-3/0]", "dp[1,]", "dp[x]"}) {
    EXPECT_TRUE(ranks_of_stream(wrong).empty()) << wrong;
  }
}

}  // namespace
}  // namespace firedrill

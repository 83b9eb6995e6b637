#include "engine/comm/collectives_over_transport.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "engine/comm/guard.h"
#include "engine/comm/test_rank.h"
#include "engine/seam/contract/collectives_contract.h"
#include "engine/sim/machine.h"

namespace firedrill {
namespace {

auto with_options(CollectivesOptions options) {
  return [options](int ranks, const std::function<void(int, Collectives&)>& body) {
    TestTransport::Shared shared;
    run_threads(ranks, [&](int rank) {
      TestRank parts(shared, rank, ranks, options);
      body(rank, parts.collectives);
      EXPECT_TRUE(parts.observer.events.empty());
    });
    for (const auto& [key, box] : shared.boxes) EXPECT_TRUE(box.empty()) << "a message that nobody took";
  };
}

// The same as fibers of the sim world, whose messages travel by reference.
void run_fibers(int ranks, const std::function<void(int, Collectives&)>& body) {
  sim::FiberPool pool;
  sim::Machine machine(pool);
  machine.reset({.schedule = {.seed = 3}, .costs = {}, .disk = {}});
  sim::Attempt& attempt =
      machine.start_attempt({.number = 1, .node_of_rank = std::vector<int>(static_cast<std::size_t>(ranks))});
  std::vector<std::string> addresses;
  for (int rank = 0; rank < ranks; ++rank) addresses.push_back(attempt.seams(rank).transport.address());
  for (int rank = 0; rank < ranks; ++rank) {
    attempt.start(rank, [&, rank] {
      const sim::Seams seams = attempt.seams(rank);
      ASSERT_TRUE(seams.transport.connect(addresses, sim::never));
      const Position position{.attempt = 1, .rank = rank, .step = 4, .phase = Phase::exchange};
      NoteObserver observer;
      DirectCompute compute;
      TransportCollectives collectives(seams.transport, compute, position, observer, {.sharded_from = 600});
      body(rank, collectives);
    });
  }
  const Status ended = attempt.run();
  EXPECT_TRUE(ended) << describe(ended.error());
}

// The same behind a guard, which changes no result.
auto guarded(Guard mode) {
  return [mode](int ranks, const std::function<void(int, Collectives&)>& body) {
    TestTransport::Shared shared;
    run_threads(ranks, [&](int rank) {
      TestRank parts(shared, rank, ranks, {.sharded_from = 600});
      NotedTransport noted(parts.transport);
      GuardedCollectives guard(parts.collectives, mode,
                               {.position = parts.position, .observer = parts.observer, .waits = noted});
      body(rank, guard);
    });
    for (const auto& [key, box] : shared.boxes) EXPECT_TRUE(box.empty()) << "a message that nobody took";
  };
}

const auto by_name = [](const auto& info) { return info.param.name; };

INSTANTIATE_TEST_SUITE_P(
    All, CollectivesContract,
    testing::Values(CollectivesSubject{"over_the_owner",
                                       with_options({.sharded_from = std::numeric_limits<std::size_t>::max()})},
                    CollectivesSubject{"by_shards", with_options({.sharded_from = 0})},
                    CollectivesSubject{"mixed", with_options({.sharded_from = 600})},
                    CollectivesSubject{"fibers", run_fibers}, CollectivesSubject{"recorded", guarded(Guard::record)},
                    CollectivesSubject{"checked", guarded(Guard::check)}),
    by_name);

Group pair_group(int me) {
  return {.id = 1, .name = "dp", .ranks = {0, 1}, .lanes = {{.begin = 0, .end = 1}, {.begin = 1, .end = 2}}, .me = me};
}
constexpr Call grad{.purpose = "grad", .deadline = std::chrono::hours(1)};

TEST(TransportCollectives, SmallReductionNeedsTwoMessagesForEachPeerOfItsOwner) {
  TestTransport::Shared shared;
  run_threads(4, [&](int number) {
    TestRank rank(shared, number, 4, {});
    Group group{.id = 1, .name = "dp", .ranks = {0, 1, 2, 3}, .lanes = {}, .me = number};
    for (int i = 0; i < 4; ++i) group.lanes.push_back({.begin = 2 * i, .end = 2 * i + 2});
    const std::vector<Value> lanes(2, Value::copy_of(std::vector<float>{1}));
    EXPECT_TRUE(rank.collectives.all_reduce(group, lanes, ReduceOp::sum, grad));
  });
  EXPECT_EQ(shared.messages, 6U);
}

TEST(TransportCollectives, OwnerGoesRoundTheGroup) {
  TestTransport::Shared shared;
  run_threads(2, [&](int number) {
    TestRank rank(shared, number, 2, {});
    const std::vector<Value> lanes = {Value::copy_of(std::vector<float>{1})};
    for (int i = 0; i < 6; ++i) {
      ASSERT_TRUE(rank.collectives.all_reduce(pair_group(number), lanes, ReduceOp::sum, grad));
    }
  });
  std::map<int, int> sent;
  for (const auto& [key, box] : shared.boxes) ++sent[std::get<0>(key)];
  EXPECT_EQ(sent[0], 6);
  std::map<int, int> first_round;  // to the owner: low bits of the tag are the round, 0 is in
  for (const auto& [key, box] : shared.boxes) {
    if ((std::get<2>(key) & 15) == 0) ++first_round[std::get<1>(key)];
  }
  EXPECT_EQ(first_round[0], 3);
  EXPECT_EQ(first_round[1], 3);
}

TEST(TransportCollectives, AbortEndsAWaitAndNamesTheCall) {
  TestTransport::Shared shared;
  TestRank waiting(shared, 0, 2, {});
  TestRank other(shared, 1, 2, {});
  Result<Value> result = Value();
  std::thread thread([&] {
    const std::vector<Value> lanes = {Value::copy_of(std::vector<float>{1})};
    result = waiting.collectives.all_reduce(pair_group(0), lanes, ReduceOp::sum, grad);
  });
  other.collectives.abort(Error{.code = Code::aborted, .message = "rank 1 died"});
  thread.join();
  ASSERT_TRUE(result.failed_with(Code::aborted));
  EXPECT_EQ(result.error().message, "all_reduce of grad over dp: rank 1 died");
  ASSERT_EQ(waiting.observer.events.size(), 1U);
  EXPECT_EQ(waiting.observer.events[0].kind, EventKind::note);
  EXPECT_EQ(waiting.observer.events[0].step, 4);
}

TEST(TransportCollectives, LanesThatDifferBetweenRanksAreAMismatch) {
  TestTransport::Shared shared;
  run_threads(2, [&](int number) {
    TestRank rank(shared, number, 2, {});
    const std::vector<Value> lanes = {Value::copy_of(std::vector<float>(static_cast<std::size_t>(number + 1)))};
    const Result<Value> result = rank.collectives.all_reduce(pair_group(number), lanes, ReduceOp::sum, grad);
    if (number == 0) {
      EXPECT_TRUE(result.failed_with(Code::mismatch));
      rank.collectives.abort(result.error());  // as a rank does that fails
    } else {
      EXPECT_TRUE(result.failed_with(Code::aborted));
    }
  });
}

// A transport of a rank that was killed.
class DeadTransport final : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;
  Status send(int, Tag, const Value&, Time) override { return Error{.code = Code::dead, .message = "killed"}; }
  Result<Value> recv(int, Tag, Time) override { return Error{.code = Code::dead, .message = "killed"}; }
};

TEST(TransportCollectives, DeadRankGetsDeadAndLeavesNoEvent) {
  TestTransport::Shared shared;
  TestRank rank(shared, 0, 2, {});
  DeadTransport transport(rank.transport);
  TransportCollectives collectives(transport, rank.compute, rank.position, rank.observer);
  const std::vector<Value> lanes = {Value::copy_of(std::vector<float>{1})};
  EXPECT_TRUE(collectives.all_reduce(pair_group(0), lanes, ReduceOp::sum, grad).failed_with(Code::dead));
  EXPECT_TRUE(collectives.barrier(pair_group(0), grad).failed_with(Code::dead));
  EXPECT_TRUE(rank.observer.events.empty());
}

}  // namespace
}  // namespace firedrill

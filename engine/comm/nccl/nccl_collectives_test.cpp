#include "engine/comm/nccl/nccl_collectives.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "engine/seam/contract/collectives_contract.h"

namespace firedrill {
namespace {

using Bytes = std::vector<std::byte>;

// What all ranks' communicators share: a mailbox for each pair of members of each communicator.
struct Hub {
  using Box = std::tuple<std::string, int, int>;  // communicator, from, to
  std::mutex mutex;
  std::map<std::pair<std::string, int>, std::condition_variable> changed;  // for each member
  std::map<Box, std::deque<Bytes>> boxes;
  std::map<std::string, std::map<int, std::pair<int, int>>> splits;  // colour and key by member
  bool aborted = false;
};

// As NCCL: what a rank issues on one communicator runs in the order of its issue, so a receive waits behind its own
// sends until their receivers have taken them.
class HubCommunicator final : public Communicator {
 public:
  HubCommunicator(Hub& hub, std::string name, int me, int size)
      : hub_(hub), name_(std::move(name)), me_(me), size_(size) {
    const std::lock_guard lock(hub_.mutex);
    for (int i = 0; i < size; ++i) hub_.changed[{name_, i}];
  }

  Status exchange(std::span<const std::span<const std::byte>> outgoing, std::span<const std::span<std::byte>> incoming,
                  Time deadline) override {
    std::unique_lock lock(hub_.mutex);
    for (int i = 0; i < size_; ++i) put(i, outgoing[static_cast<std::size_t>(i)]);
    FD_TRY_VOID(wait(lock, deadline, [&] {
      for (int i = 0; i < size_; ++i) {
        if (!incoming[static_cast<std::size_t>(i)].empty() && box(i, me_).empty()) return false;
      }
      return true;
    }));
    for (int i = 0; i < size_; ++i) take(i, incoming[static_cast<std::size_t>(i)]);
    return {};
  }
  Status send(int member, std::span<const std::byte> bytes, Time) override {
    const std::lock_guard lock(hub_.mutex);
    put(member, bytes);
    return {};
  }
  Status receive(int member, std::span<std::byte> bytes, Time deadline) override {
    std::unique_lock lock(hub_.mutex);
    FD_TRY_VOID(wait(lock, deadline, [&] {
      for (int i = 0; i < size_; ++i) {
        if (!box(me_, i).empty()) return false;
      }
      return !box(member, me_).empty();
    }));
    take(member, bytes);
    return {};
  }
  Status all_reduce(DType dtype, std::span<const std::byte> in, std::span<std::byte> out, ReduceOp op,
                    Time deadline) override {
    FD_CHECK(dtype == DType::f32 && op == ReduceOp::sum, "only what the tests ask for");
    std::vector<Bytes> all(static_cast<std::size_t>(size_), Bytes(in.size()));
    const std::vector<std::span<const std::byte>> outgoing(static_cast<std::size_t>(size_), in);
    FD_TRY_VOID(exchange(outgoing, std::vector<std::span<std::byte>>(all.begin(), all.end()), deadline));
    const std::span<float> sum(reinterpret_cast<float*>(out.data()), out.size() / sizeof(float));
    std::fill(sum.begin(), sum.end(), 0.0F);
    for (const Bytes& one : all) {  // left to right: not the tree
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += reinterpret_cast<const float*>(one.data())[i];
    }
    return {};
  }
  Result<std::unique_ptr<Communicator>> split(int color, int key, Time deadline) override {
    const std::string round = name_ + "/" + std::to_string(splits_++);
    std::unique_lock lock(hub_.mutex);
    hub_.splits[round][me_] = {color, key};
    for (int i = 0; i < size_; ++i) tell(i);
    FD_TRY_VOID(wait(lock, deadline, [&] { return std::ssize(hub_.splits[round]) == size_; }));
    std::map<int, int> keys;
    for (const auto& [member, given] : hub_.splits[round]) {
      if (given.first == color) keys[given.second] = member;
    }
    const auto mine = static_cast<int>(std::distance(keys.begin(), keys.find(key)));
    lock.unlock();
    return std::unique_ptr<Communicator>(std::make_unique<HubCommunicator>(hub_, round + "/" + std::to_string(color),
                                                                           mine, static_cast<int>(keys.size())));
  }
  void abort() override {
    const std::lock_guard lock(hub_.mutex);
    hub_.aborted = true;
    for (auto& [member, changed] : hub_.changed) changed.notify_all();
  }

 private:
  // These with the hub locked.
  std::deque<Bytes>& box(int from, int to) { return hub_.boxes[{name_, from, to}]; }
  void put(int to, std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    box(me_, to).emplace_back(bytes.begin(), bytes.end());
    tell(to);
  }
  void take(int from, std::span<std::byte> bytes) {
    if (bytes.empty()) return;
    std::deque<Bytes>& waiting = box(from, me_);
    FD_CHECK(waiting.front().size() == bytes.size(), "{} bytes for {}", waiting.front().size(), bytes.size());
    std::copy(waiting.front().begin(), waiting.front().end(), bytes.begin());
    waiting.pop_front();
    tell(from);
  }
  void tell(int member) { hub_.changed[{name_, member}].notify_all(); }
  template <class Condition>
  Status wait(std::unique_lock<std::mutex>& lock, Time deadline, Condition condition) {
    const Time longest = std::min<Time>(deadline, std::chrono::seconds(20));
    hub_.changed[{name_, me_}].wait_for(lock, longest, [&] { return hub_.aborted || condition(); });
    if (condition()) return {};
    if (hub_.aborted) return Error{.code = Code::aborted, .message = "aborted"};
    return Error{.code = Code::timeout, .message = "nobody came"};
  }

  Hub& hub_;
  std::string name_;
  int me_;
  int size_;
  int splits_ = 0;
};

// Every rank in a thread, with collectives that know `groups_of(rank)`.
template <class GroupsOf, class Body>
void run_with_groups(int ranks, NcclOptions options, GroupsOf groups_of, Body body) {
  Hub hub;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      DirectCompute compute;
      NcclCollectives collectives(std::make_unique<HubCommunicator>(hub, "world", rank, ranks), compute, options);
      ASSERT_TRUE(collectives.connect(groups_of(rank), std::chrono::seconds(20)));
      body(rank, collectives);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

Group ring_of(int ranks, int me) {
  Group group{.id = 6, .name = "pp", .ranks = {}, .lanes = {}, .me = me};
  for (int r = 0; r < ranks; ++r) {
    group.ranks.push_back(r);
    group.lanes.push_back({.begin = r, .end = r + 1});
  }
  return group;
}

// The contract makes its groups up as it goes; all ranks make the same, so each is connected when it is first seen.
class ConnectingCollectives final : public ForwardingCollectives {
 public:
  explicit ConnectingCollectives(NcclCollectives& nccl) : ForwardingCollectives(nccl), nccl_(nccl) {}
  Result<Value> all_reduce(const Group& group, std::span<const Value> lanes, ReduceOp op, const Call& call) override {
    return connected(group).all_reduce(group, lanes, op, call);
  }
  Result<Value> reduce_scatter(const Group& group, std::span<const Value> lanes, ReduceOp op,
                               const Call& call) override {
    return connected(group).reduce_scatter(group, lanes, op, call);
  }
  Result<Value> all_gather(const Group& group, const Value& mine, const Call& call) override {
    return connected(group).all_gather(group, mine, call);
  }
  Result<Value> broadcast(const Group& group, const Value& value, int root, const Call& call) override {
    return connected(group).broadcast(group, value, root, call);
  }
  Status barrier(const Group& group, const Call& call) override { return connected(group).barrier(group, call); }
  Result<Value> all_to_all(const Group& group, std::span<const Value> to, const Call& call) override {
    return connected(group).all_to_all(group, to, call);
  }
  Status send(const Group& group, int peer, const Value& value, const Call& call) override {
    return connected(group).send(group, peer, value, call);
  }
  Result<Value> recv(const Group& group, int peer, const Call& call) override {
    return connected(group).recv(group, peer, call);
  }

 private:
  NcclCollectives& connected(const Group& group) {
    if (known_ != group.lanes) {
      const Status made =
          nccl_.connect(std::vector<NcclGroup>{{.group = group, .point_to_point = true}}, std::chrono::seconds(20));
      EXPECT_TRUE(made);
      known_ = group.lanes;
    }
    return nccl_;
  }

  NcclCollectives& nccl_;
  std::vector<LaneRange> known_;
};

void run_contract(int ranks, const std::function<void(int, Collectives&)>& body) {
  run_with_groups(
      ranks, {}, [](int) { return std::vector<NcclGroup>(); },
      [&body](int rank, NcclCollectives& nccl) {
        ConnectingCollectives collectives(nccl);
        body(rank, collectives);
      });
}

const auto by_name = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Grouped, CollectivesContract, testing::Values(CollectivesSubject{"nccl", run_contract}),
                         by_name);

constexpr Call shift{.purpose = "shift", .deadline = std::chrono::milliseconds(500)};

// True if every rank that first sends to the next and then receives from the one before gets what it should.
bool ring_shifts(int ranks) {
  std::atomic<int> right = 0;
  run_with_groups(
      ranks, {}, [&](int me) { return std::vector<NcclGroup>{{.group = ring_of(ranks, me), .point_to_point = true}}; },
      [&](int me, NcclCollectives& collectives) {
        const Group ring = ring_of(ranks, me);
        const Value mine = Value::copy_of(std::vector<std::int64_t>{me});
        ASSERT_TRUE(collectives.send(ring, (me + 1) % ranks, mine, shift));
        const Result<Value> came = collectives.recv(ring, (me + ranks - 1) % ranks, shift);
        if (came && came->as<std::int64_t>()[0] == (me + ranks - 1) % ranks) ++right;
      });
  return right == ranks;
}

TEST(NcclCollectives, RingOfSendsDoesNotWaitForItself) {
  for (const int ranks : {2, 3, 4, 5}) EXPECT_TRUE(ring_shifts(ranks)) << ranks;
}

// What the three communicators are for.
TEST(NcclCollectives, RingOnOneCommunicatorWouldWaitForItself) {
  Hub hub;
  std::atomic<int> waited = 0;
  std::vector<std::thread> threads;
  for (int me = 0; me < 3; ++me) {
    threads.emplace_back([&hub, &waited, me] {
      HubCommunicator ring(hub, "ring", me, 3);
      Bytes bytes(8);
      ASSERT_TRUE(ring.send((me + 1) % 3, bytes, shift.deadline));
      if (ring.receive((me + 2) % 3, bytes, shift.deadline).failed_with(Code::timeout)) ++waited;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(waited, 3);
}

TEST(NcclCollectives, NativeSumIsTheCommunicatorsOwn) {
  const std::vector<float> numbers = {1e8F, 1.0F, -1e8F, 1.0F};  // left to right 1, by the tree 0 or 2
  std::array<float, 2> sums{};
  for (const bool native : {false, true}) {
    run_with_groups(
        4, {.native = native}, [](int me) { return std::vector<NcclGroup>{{.group = ring_of(4, me)}}; },
        [&](int me, NcclCollectives& collectives) {
          const std::vector<Value> lanes = {Value::copy_of(std::vector<float>{numbers[static_cast<std::size_t>(me)]})};
          const Result<Value> sum = collectives.all_reduce(ring_of(4, me), lanes, ReduceOp::sum, shift);
          ASSERT_TRUE(sum) << describe(sum.error());
          if (me == 0) sums[native ? 1 : 0] = sum->as<float>()[0];
        });
  }
  EXPECT_EQ(sums[0], (numbers[0] + numbers[1]) + (numbers[2] + numbers[3]));
  EXPECT_EQ(sums[1], ((numbers[0] + numbers[1]) + numbers[2]) + numbers[3]);
  EXPECT_NE(sums[0], sums[1]);
}

TEST(NcclCollectives, MemberThatStaysAwayIsATimeoutThatNamesTheCall) {
  run_with_groups(
      2, {}, [](int me) { return std::vector<NcclGroup>{{.group = ring_of(2, me)}}; },
      [](int me, NcclCollectives& collectives) {
        if (me == 1) return;
        const Status met = collectives.barrier(ring_of(2, 0), {.purpose = "end", .deadline = shift.deadline});
        ASSERT_TRUE(met.failed_with(Code::timeout));
        EXPECT_EQ(met.error().message, "barrier of end over pp: nobody came");
      });
}

TEST(NcclCollectives, AbortEndsAWait) {
  run_with_groups(
      2, {}, [](int me) { return std::vector<NcclGroup>{{.group = ring_of(2, me), .point_to_point = true}}; },
      [](int me, NcclCollectives& collectives) {
        ASSERT_TRUE(collectives.barrier(ring_of(2, me), shift));  // both are connected
        if (me == 1) return collectives.abort({.code = Code::aborted, .message = "a peer died"});
        const Result<Value> came =
            collectives.recv(ring_of(2, 0), 1, {.purpose = "activation", .deadline = std::chrono::seconds(20)});
        EXPECT_TRUE(came.failed_with(Code::aborted));
      });
}

}  // namespace
}  // namespace firedrill

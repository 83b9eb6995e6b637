// What needs a GPU is skipped where there is none; two ranks need two.
#include "engine/comm/cuda/nccl_communicator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/comm/nccl/nccl_collectives.h"

namespace firedrill {
namespace {

int gpu_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

class WallClock final : public Clock {
 public:
  Time now() const override { return std::chrono::steady_clock::now() - begin_; }
  Status sleep_until(Time time) override {
    std::this_thread::sleep_for(time - now());
    return {};
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

class ThreadStore final : public Store {
 public:
  Status set(std::string_view key, std::string_view value) override {
    const std::lock_guard lock(mutex_);
    values_[std::string(key)] = value;
    changed_.notify_all();
    return {};
  }
  Result<std::string> get(std::string_view key, Time) override {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(30), [&] { return values_.contains(std::string(key)); });
    const auto found = values_.find(std::string(key));
    if (found == values_.end()) return Error{.code = Code::timeout, .message = "no such key"};
    return found->second;
  }
  Result<std::int64_t> add(std::string_view, std::int64_t) override {
    return Error{.code = Code::unavailable, .message = "not offered"};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

constexpr Time soon = std::chrono::seconds(60);

Group everybody(int ranks, int me) {
  Group group{.id = 1, .name = "world", .ranks = {}, .lanes = {}, .me = me};
  for (int r = 0; r < ranks; ++r) {
    group.ranks.push_back(r);
    group.lanes.push_back({.begin = r, .end = r + 1});
  }
  return group;
}

// Each rank in a thread, on a GPU of its own.
void run_ranks(int ranks, NcclOptions options, const std::function<void(int, NcclCollectives&)>& body) {
  WallClock clock;
  ThreadStore store;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Result<std::unique_ptr<Communicator>> world = NcclCommunicator::of_world(
          store, "nccl", clock, {.rank = rank, .world_size = ranks, .device = rank}, clock.now() + soon);
      ASSERT_TRUE(world) << describe(world.error());
      DirectCompute compute;
      NcclCollectives collectives(*std::move(world), compute, options);
      const Status connected = collectives.connect(
          std::vector<NcclGroup>{{.group = everybody(ranks, rank), .point_to_point = true}}, clock.now() + soon);
      ASSERT_TRUE(connected) << describe(connected.error());
      body(rank, collectives);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

#define NEEDS_GPUS(wanted)                                                                        \
  if (gpu_count() < (wanted)) {                                                                   \
    GTEST_SKIP() << "not run: " << (wanted) << " GPUs are needed, and there are " << gpu_count(); \
  }

TEST(Nccl, LibraryIsThereAndTellsItsVersion) {
  int version = 0;
  ASSERT_EQ(ncclGetVersion(&version), ncclSuccess);
  EXPECT_GE(version, 21800);  // configurations and splits
}

TEST(Nccl, WithoutAGpuTheErrorSaysSo) {
  if (gpu_count() > 0) GTEST_SKIP() << "there is a GPU";
  WallClock clock;
  ThreadStore store;
  const auto world = NcclCommunicator::of_world(store, "nccl", clock, {}, clock.now() + soon);
  ASSERT_FALSE(world);
  EXPECT_EQ(world.error().code, Code::unavailable);
  EXPECT_NE(world.error().message.find("cudaSetDevice"), std::string::npos) << world.error().message;
}

TEST(Nccl, OneRankSplitsReducesAndLeaves) {
  NEEDS_GPUS(1);
  WallClock clock;
  ThreadStore store;
  auto world = NcclCommunicator::of_world(store, "nccl", clock, {}, clock.now() + soon);
  ASSERT_TRUE(world) << describe(world.error());
  auto group = (*world)->split(0, 0, clock.now() + soon);
  ASSERT_TRUE(group) << describe(group.error());
  const std::vector<float> in = {1, 2, 3};
  std::vector<float> out(3);
  const Status added = (*group)->all_reduce(DType::f32, std::as_bytes(std::span(in)),
                                            std::as_writable_bytes(std::span(out)), ReduceOp::sum, clock.now() + soon);
  ASSERT_TRUE(added) << describe(added.error());
  EXPECT_EQ(out, in);
}

TEST(Nccl, TreeOverTwoGpusHasItsBitsAndNativeSumsAreClose) {
  NEEDS_GPUS(2);
  for (const bool native : {false, true}) {
    run_ranks(2, {.native = native}, [](int rank, NcclCollectives& collectives) {
      const std::vector<Value> lanes = {Value::copy_of(std::vector<float>{0.1F * static_cast<float>(rank + 1), 2.0F})};
      const Result<Value> sum =
          collectives.all_reduce(everybody(2, rank), lanes, ReduceOp::sum, {.purpose = "sum", .deadline = soon});
      ASSERT_TRUE(sum) << describe(sum.error());
      EXPECT_EQ(sum->as<float>()[0], 0.1F + 0.2F);
      EXPECT_EQ(sum->as<float>()[1], 4.0F);
    });
  }
}

TEST(Nccl, PeerThatStaysAwayIsATimeout) {
  NEEDS_GPUS(2);
  run_ranks(2, {}, [](int rank, NcclCollectives& collectives) {
    if (rank == 1) return std::this_thread::sleep_for(std::chrono::seconds(4));
    const Status met = collectives.barrier(everybody(2, rank), {.purpose = "end", .deadline = std::chrono::seconds(2)});
    EXPECT_TRUE(met.failed_with(Code::timeout));
  });
}

}  // namespace
}  // namespace firedrill

// The collectives' contract where the rooms meet: over TCP with ranks as threads, and behind the decorator that injects
// faults, with a fault that is watched for and never comes.
#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <thread>

#include "engine/comm/collectives_over_transport.h"
#include "engine/os/tcp_transport.h"
#include "engine/seam/contract/collectives_contract.h"
#include "engine/seam/silent_observer.h"
#include "faults/faulty_collectives.h"

namespace firedrill {
namespace {

class NoEffects final : public Effects {
 public:
  Status journal(const Firing&) override { return {}; }
  void kill_rank() override { never(); }
  void hang_rank() override { never(); }
  void stall_task() override { never(); }
  void preempt_rank() override { never(); }
  void exit_rank(int) override { never(); }
  void kill_node(bool, bool) override { never(); }
  FileSystem& storage() override { never(); }
  Status overwrite(std::string_view, std::int64_t, const Value&) override { never(); }
  void forget_unsynced(FileOp, std::string_view) override { never(); }
  void skew_clock(Duration) override { never(); }
  std::vector<int> others_in(std::string_view) override { never(); }
  std::vector<int> node_ranks() override { never(); }
  void trouble_link(int, int, const LinkTrouble&) override { never(); }
  void send_late(int, Tag, const Value&) override { never(); }
  Time now() override { never(); }
  Status sleep_until(Time) override { never(); }

 private:
  [[noreturn]] static void never() { fail_check(__FILE__, __LINE__, "effects", "the fault must never come"); }
};

using Body = std::function<void(int, Collectives&)>;

void run_over_tcp(int ranks, bool faulty, const Body& body) {
  const Epoch epoch = Epoch::now();
  std::vector<std::string> addresses(static_cast<std::size_t>(ranks));
  std::barrier together(ranks);
  const auto rank_main = [&](int rank) {
    auto transport = TcpTransport::listen({.rank = rank, .world_size = ranks, .run = digest_of("run"), .epoch = epoch});
    ASSERT_TRUE(transport) << describe(transport.error());
    addresses[static_cast<std::size_t>(rank)] = (*transport)->address();
    together.arrive_and_wait();
    const Time deadline = epoch.elapsed() + std::chrono::seconds(60);
    const Status connected = (*transport)->connect(addresses, deadline);
    EXPECT_TRUE(connected) << describe(connected.error());
    together.arrive_and_wait();  // nobody leaves while a peer is still connecting
    if (!connected) return;
    const Position position{.attempt = 1, .rank = rank, .step = 4, .phase = Phase::exchange};
    SilentObserver observer;
    DirectCompute compute;
    TransportCollectives collectives(**transport, compute, position, observer, {.sharded_from = 600});
    const std::vector<FaultSpec> plan = {{.at = {.rank = rank, .nth = 1 << 30}}};
    NoEffects effects;
    Injector injector(plan, {}, position, effects);
    FaultyCollectives decorated(collectives, injector);
    body(rank, faulty ? static_cast<Collectives&>(decorated) : collectives);
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(rank_main, rank);
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(
    World, CollectivesContract,
    testing::Values(CollectivesSubject{"tcp", [](int ranks, const Body& body) { run_over_tcp(ranks, false, body); }},
                    CollectivesSubject{"tcp_with_faults",
                                       [](int ranks, const Body& body) { run_over_tcp(ranks, true, body); }}),
    [](const auto& subject) { return subject.param.name; });

}  // namespace
}  // namespace firedrill

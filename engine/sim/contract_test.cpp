// The sim world's seams against the contracts of the seams.
#include "engine/seam/contract/file_system_contract.h"
#include "engine/seam/contract/host_contract.h"
#include "engine/seam/contract/transport_contract.h"
#include "engine/sim/machine.h"

namespace firedrill {
namespace {

using sim::Attempt;
using sim::FiberPool;
using sim::Machine;
using sim::RankEnd;
using sim::Seams;

void run_sim_ranks(int ranks, const sim::Schedule& schedule, const std::function<void(int, const Seams&)>& body) {
  FiberPool pool;
  Machine machine(pool);
  machine.reset({.schedule = schedule, .costs = {}, .disk = {}});
  std::vector<int> nodes;
  for (int rank = 0; rank < ranks; ++rank) nodes.push_back(rank / 2);
  Attempt& attempt = machine.start_attempt({.number = 1, .node_of_rank = nodes});
  for (int rank = 0; rank < ranks; ++rank) attempt.start(rank, [&, rank] { body(rank, attempt.seams(rank)); });
  const Status ended = attempt.run();
  EXPECT_TRUE(ended) << describe(ended.error());
  for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(attempt.end_of(rank), RankEnd::finished);
}

std::function<void(const std::function<void(FileSystem&)>&)> disk_of_a_rank(std::uint64_t seed) {
  return [seed](const std::function<void(FileSystem&)>& body) {
    run_sim_ranks(1, {.seed = seed}, [&](int, const Seams& seams) { body(seams.files); });
  };
}

void with_bare_disk(const std::function<void(FileSystem&)>& body) {
  sim::Disk disk;
  body(*disk.files({}));
}

void with_forwarded_disk(const std::function<void(FileSystem&)>& body) {
  sim::Disk disk;
  const auto files = disk.files({});
  ForwardingFileSystem forwarding(*files);
  body(forwarding);
}

std::function<void(int, const RankBody&)> sim_ranks(std::uint64_t seed) {
  return [seed](int ranks, const RankBody& body) {
    run_sim_ranks(ranks, {.seed = seed},
                  [&](int rank, const Seams& seams) { body(rank, seams.transport, seams.store, seams.clock); });
  };
}

void forwarded_ranks(int ranks, const RankBody& body) {
  run_sim_ranks(ranks, {}, [&](int rank, const Seams& seams) {
    ForwardingTransport transport(seams.transport);
    ForwardingStore store(seams.store);
    ForwardingClock clock(seams.clock);
    body(rank, transport, store, clock);
  });
}

void sim_host(const std::function<void(Host&, Clock&)>& body) {
  run_sim_ranks(1, {}, [&](int, const Seams& seams) { body(seams.host, seams.clock); });
}

void forwarded_host(const std::function<void(Host&, Clock&)>& body) {
  run_sim_ranks(1, {.seed = 3}, [&](int, const Seams& seams) {
    ForwardingHost host(seams.host);
    body(host, seams.clock);
  });
}

const auto by_name = [](const auto& info) { return info.param.name; };

INSTANTIATE_TEST_SUITE_P(Sim, FileSystemContract,
                         testing::Values(FileSystemSubject{"rank", disk_of_a_rank(0)},
                                         FileSystemSubject{"rank_seeded", disk_of_a_rank(5)},
                                         FileSystemSubject{"disk", with_bare_disk},
                                         FileSystemSubject{"forwarding", with_forwarded_disk}),
                         by_name);
INSTANTIATE_TEST_SUITE_P(Sim, TransportContract,
                         testing::Values(RanksSubject{"plain", sim_ranks(0)}, RanksSubject{"seed_1", sim_ranks(1)},
                                         RanksSubject{"seed_2", sim_ranks(2)},
                                         RanksSubject{"forwarding", forwarded_ranks}),
                         by_name);
INSTANTIATE_TEST_SUITE_P(Sim, HostContract,
                         testing::Values(HostSubject{"plain", sim_host}, HostSubject{"forwarding", forwarded_host}),
                         by_name);

}  // namespace
}  // namespace firedrill

// The decorators against the contracts of the seams: with a fault that is watched for and never comes, nothing changes.
#include "engine/seam/contract/file_system_contract.h"
#include "engine/seam/contract/transport_contract.h"

#include "engine/sim/machine.h"
#include "faults/fake_world.h"
#include "faults/faulty_file_system.h"
#include "faults/faulty_store.h"
#include "faults/faulty_transport.h"

namespace firedrill {
namespace {

// Watches every call of rank 0 and 1.
const std::vector<FaultSpec>& faults_that_never_come() {
  static const std::vector<FaultSpec> plan = {{.at = {.rank = 0, .nth = 1 << 30}}, {.at = {.rank = 1, .step = 99}}};
  return plan;
}

struct Guard {
  explicit Guard(int rank) : position{.attempt = 1, .rank = rank, .step = 0, .phase = Phase::none} {}
  Position position;
  FakeWorld world;
  Injector injector{faults_that_never_come(), {}, position, world};
};

void with_fresh_disk(const std::function<void(FileSystem&)>& body) {
  sim::Disk disk;
  const auto files = disk.files({});
  Guard guard(0);
  ASSERT_FALSE(guard.injector.idle());
  FaultyFileSystem faulty(*files, guard.injector);
  body(faulty);
}

void run_ranks(int ranks, const RankBody& body) {
  sim::FiberPool pool;
  sim::Machine machine(pool);
  machine.reset({.schedule = {.seed = 1}, .costs = {}, .disk = {}});
  sim::Attempt& attempt =
      machine.start_attempt({.number = 1, .node_of_rank = std::vector<int>(static_cast<std::size_t>(ranks))});
  for (int rank = 0; rank < ranks; ++rank) {
    attempt.start(rank, [&, rank] {
      const sim::Seams seams = attempt.seams(rank);
      Guard guard(rank);
      FaultyTransport transport(seams.transport, guard.injector);
      FaultyStore store(seams.store, guard.injector);
      body(rank, transport, store, seams.clock);
    });
  }
  const Status ended = attempt.run();
  EXPECT_TRUE(ended) << describe(ended.error());
}

const auto by_name = [](const auto& info) { return info.param.name; };

INSTANTIATE_TEST_SUITE_P(Faulty, FileSystemContract, testing::Values(FileSystemSubject{"disk", with_fresh_disk}),
                         by_name);
INSTANTIATE_TEST_SUITE_P(Faulty, TransportContract, testing::Values(RanksSubject{"fibers", run_ranks}), by_name);

}  // namespace
}  // namespace firedrill

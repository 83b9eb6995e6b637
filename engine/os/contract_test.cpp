// The seams' contracts on the real implementations and behind the forwarding decorators. Ranks are threads here.
#include <gtest/gtest.h>

#include <thread>

#include "engine/os/process_host.h"
#include "engine/os/tcp_store.h"
#include "engine/os/tcp_transport.h"
#include "engine/seam/contract/host_contract.h"
#include "engine/seam/contract/transport_contract.h"

namespace firedrill {
namespace {

void run_one_rank(const TcpTransportOptions& options, std::uint16_t store_port, const RankBody& body) {
  AbortSignal abort;
  SteadyClock clock(options.epoch, abort);
  const auto store = TcpStore::connect("127.0.0.1", store_port, options.epoch, abort);
  ASSERT_TRUE(store) << describe(store.error());
  const auto transport = TcpTransport::listen(options);
  ASSERT_TRUE(transport) << describe(transport.error());
  body(options.rank, **transport, **store, clock);
}

void run_ranks(int ranks, const RankBody& body) {
  const auto server = TcpStoreServer::start();
  ASSERT_TRUE(server) << describe(server.error());
  std::vector<std::thread> threads;
  const Epoch epoch = Epoch::now();
  for (int rank = 0; rank < ranks; ++rank) {
    const TcpTransportOptions options{.rank = rank, .world_size = ranks, .run = digest_of("run"), .epoch = epoch};
    threads.emplace_back([options, port = (*server)->port(), &body] { run_one_rank(options, port, body); });
  }
  for (std::thread& thread : threads) thread.join();
}

void run_forwarded(int ranks, const RankBody& body) {
  run_ranks(ranks, [&](int rank, Transport& transport, Store& store, Clock& clock) {
    ForwardingTransport forwarding_transport(transport);
    ForwardingStore forwarding_store(store);
    ForwardingClock forwarding_clock(clock);
    body(rank, forwarding_transport, forwarding_store, forwarding_clock);
  });
}

INSTANTIATE_TEST_SUITE_P(Os, TransportContract,
                         testing::Values(RanksSubject{"tcp", run_ranks}, RanksSubject{"forwarded", run_forwarded}),
                         [](const auto& subject) { return subject.param.name; });

void run_host(const std::function<void(Host&, Clock&)>& body) {
  AbortSignal abort;
  const Epoch epoch = Epoch::now();
  SteadyClock clock(epoch, abort);
  ProcessHost host(0, epoch);
  body(host, clock);
}

void run_forwarded_host(const std::function<void(Host&, Clock&)>& body) {
  run_host([&](Host& host, Clock& clock) {
    ForwardingHost forwarding_host(host);
    ForwardingClock forwarding_clock(clock);
    body(forwarding_host, forwarding_clock);
  });
}

INSTANTIATE_TEST_SUITE_P(Os, HostContract,
                         testing::Values(HostSubject{"process", run_host},
                                         HostSubject{"forwarded", run_forwarded_host}),
                         [](const auto& subject) { return subject.param.name; });

}  // namespace
}  // namespace firedrill

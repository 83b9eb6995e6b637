// TcpTransport: Transport over TCP, one connection for each pair of ranks. Each message carries the run, the attempt
// and its sender; what belongs to another run or attempt is dropped and counted, never delivered.
//
// No thread of its own: whoever waits in connect, send or recv drives the I/O of all peers meanwhile, so two ranks that
// send each other more than the sockets hold both get through. send returns when the kernel has all bytes. When a
// peer's connection ends, its messages that arrived before are still delivered; after them every wait for that peer
// ends with `aborted` at once, with the peer's number in the message.
//
// Threads: all calls from any thread; one of the waiting threads drives. abort also shuts the connections, so that
// peers see it. Errors as in the seam.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/digest.h"
#include "engine/os/steady_clock.h"
#include "engine/seam/arrivals.h"

namespace firedrill {

struct TcpTransportOptions {
  int rank = 0;
  int world_size = 1;
  int attempt = 1;
  Digest run;                              // the digest of the run id
  std::string bind_address = "127.0.0.1";  // also what peers are told
  Epoch epoch;
  std::uint64_t message_bytes_max = std::uint64_t{1} << 34;
};

class TcpTransport final : public Transport, public Arrivals {
 public:
  // Binds and listens at a free port. Errors: unavailable, invalid_input (the address).
  static Result<std::unique_ptr<TcpTransport>> listen(const TcpTransportOptions& options);
  ~TcpTransport() override;

  int rank() const override;
  int world_size() const override;
  std::string address() const override;
  Status connect(const std::vector<std::string>& addresses, Time deadline) override;
  Status send(int peer, Tag tag, const Value& value, Time deadline) override;
  Result<Value> recv(int peer, Tag tag, Time deadline) override;
  void abort(const Error& reason) override;
  std::optional<Duration> under_way(int peer, Tag tag) const override;

  // `tell` is called with the first message taken from each peer, and with the first of each other attempt of it (which
  // there must not be): by the thread that takes it, with the attempt that the message carries. Set before connect.
  void tell_first_messages(std::function<void(int peer, int sent_in)> tell);

  // Messages and connections of another run or attempt that were dropped.
  std::int64_t foreign_dropped() const;

 private:
  struct State;
  explicit TcpTransport(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace firedrill

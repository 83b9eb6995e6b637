// Meeting: the ranks of a probe, connected over the transport of the process world.
#pragma once

#include <memory>

#include "engine/os/tcp_transport.h"
#include "harness/preflight/rank.h"

namespace firedrill::preflight {

class Meeting {
 public:
  static constexpr std::chrono::seconds patience{10};  // of each wait

  // All ranks of the probe must call it. Errors: those of the transport, on this rank.
  static Result<std::unique_ptr<Meeting>> of(const Probe& probe);

  Transport& transport() { return *transport_; }
  Time deadline() const { return epoch_.elapsed() + patience; }
  Epoch epoch() const { return epoch_; }

 private:
  Epoch epoch_ = Epoch::now();
  std::unique_ptr<TcpTransport> real_;
  std::unique_ptr<Transport> decorated_;
  Transport* transport_ = nullptr;
};

}  // namespace firedrill::preflight

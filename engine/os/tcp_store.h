// TcpStore: Store over c10d::TCPStore, the rendezvous of PyTorch's own jobs. The server lives in the supervisor, for
// all attempts; each rank has a client. Keys are shared by all attempts: callers put the attempt into the key.
//
// A server adds threads to its process: make none in a process that forks later.
// Errors: unavailable when the server does not answer; the rest as in the seam. A get ends with `aborted` within 100 ms
// after the signal is raised.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/os/steady_clock.h"
#include "engine/seam/store.h"

namespace firedrill {

class TcpStoreServer {
 public:
  // At a free port of 127.0.0.1. Errors: unavailable.
  static Result<std::unique_ptr<TcpStoreServer>> start();
  ~TcpStoreServer();
  std::uint16_t port() const;

 private:
  struct State;
  explicit TcpStoreServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class TcpStore final : public Store {
 public:
  // Errors: unavailable.
  static Result<std::unique_ptr<TcpStore>> connect(const std::string& host, std::uint16_t port, Epoch epoch,
                                                   AbortSignal& abort);
  ~TcpStore() override;
  Status set(std::string_view key, std::string_view value) override;
  Result<std::string> get(std::string_view key, Time deadline) override;
  Result<std::int64_t> add(std::string_view key, std::int64_t amount) override;

 private:
  struct State;
  explicit TcpStore(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace firedrill

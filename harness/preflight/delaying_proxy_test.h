// A TCP proxy for tests: what goes through it arrives later, in both directions, and at any bandwidth.
//
// Threads: one of its own for each direction of a connection, which live as long as the proxy.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "engine/os/descriptor.h"

namespace firedrill::preflight {

class DelayingProxy {
 public:
  // Carries connections on to `target` ("127.0.0.1:40123").
  DelayingProxy(const std::string& target, std::chrono::milliseconds delay);
  ~DelayingProxy();
  DelayingProxy(const DelayingProxy&) = delete;
  DelayingProxy& operator=(const DelayingProxy&) = delete;
  // Where it listens.
  const std::string& address() const { return address_; }

 private:
  void accept_all();
  void carry(int from, int to) const;

  std::string target_;
  std::chrono::milliseconds delay_;
  Descriptor listener_;
  std::string address_;
  std::atomic<bool> over_{false};
  std::vector<Descriptor> ends_;  // of the accepting thread, until it is joined
  std::vector<std::jthread> carriers_;
  std::jthread accepting_;
};

}  // namespace firedrill::preflight

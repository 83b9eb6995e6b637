// Host: what a rank may ask of the machine under it. Rank code starts no thread and takes no lock of its own; a second
// task (asynchronous publish, heartbeat) is asked for here.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "engine/base/result.h"
#include "engine/seam/clock.h"

namespace firedrill {

// One waitable thing of a rank: notified once or often, waited for by one task at a time.
using EventId = std::uint64_t;

class Host {
 public:
  virtual ~Host() = default;
  virtual int node() const = 0;
  // Runs `task` beside the caller; it may use the rank's seams. Errors: dead.
  virtual Status spawn(std::string_view name, std::function<void()> task) = 0;
  // Waits until `event` was notified after the last wait for it. Errors: dead, aborted, timeout.
  virtual Status wait(EventId event, Time deadline) = 0;
  virtual void notify(EventId event) = 0;
  // The rank dies here, as by SIGKILL. In the sim world the call returns, and from then on every seam call returns
  // `dead`.
  virtual void kill_self() = 0;
  virtual bool dead() const = 0;
};

class ForwardingHost : public Host {
 public:
  explicit ForwardingHost(Host& inner) : inner_(inner) {}
  int node() const override { return inner_.node(); }
  Status spawn(std::string_view name, std::function<void()> task) override {
    return inner_.spawn(name, std::move(task));
  }
  Status wait(EventId event, Time deadline) override { return inner_.wait(event, deadline); }
  void notify(EventId event) override { inner_.notify(event); }
  void kill_self() override { inner_.kill_self(); }
  bool dead() const override { return inner_.dead(); }

 protected:
  Host& inner_;
};

}  // namespace firedrill

// Clock: the only source of time of rank code. Virtual in the sim world, monotonic in the process world. Nothing that
// reaches a digest or a decision about results may depend on it; deadlines and accounting may.
#pragma once

#include <chrono>

#include "engine/base/result.h"

namespace firedrill {

using Time = std::chrono::nanoseconds;  // since the start of the world
using Duration = std::chrono::nanoseconds;

class Clock {
 public:
  virtual ~Clock() = default;
  // Never goes back. Callable from any task of the rank.
  virtual Time now() const = 0;
  // Returns when now() >= time. Errors: dead, aborted.
  virtual Status sleep_until(Time time) = 0;
};

class ForwardingClock : public Clock {
 public:
  explicit ForwardingClock(Clock& inner) : inner_(inner) {}
  Time now() const override { return inner_.now(); }
  Status sleep_until(Time time) override { return inner_.sleep_until(time); }

 protected:
  Clock& inner_;
};

}  // namespace firedrill

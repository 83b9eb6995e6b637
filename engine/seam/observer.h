// Observer: where events go. The caller fills in kind and arguments; emit() stamps attempt, rank, step and phase from
// the rank's Position, and the observer stamps the time. Observing never fails and never changes what a rank does.
#pragma once

#include <span>
#include <string_view>

#include "engine/seam/event.h"

namespace firedrill {

struct NamedDigest {
  std::string_view name;
  Digest digest;
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void event(const Event& event) = 0;
  // The same text gives the same number.
  virtual NameId intern(std::string_view text) = 0;
  // A state digest stands for the digests of all tensors under it. They are given once per state digest: ask first.
  virtual bool knows_state(const Digest& state) = 0;
  virtual void describe_state(const Digest& state, std::span<const NamedDigest> tensors) = 0;
};

class ForwardingObserver : public Observer {
 public:
  explicit ForwardingObserver(Observer& inner) : inner_(inner) {}
  void event(const Event& event) override { inner_.event(event); }
  NameId intern(std::string_view text) override { return inner_.intern(text); }
  bool knows_state(const Digest& state) override { return inner_.knows_state(state); }
  void describe_state(const Digest& state, std::span<const NamedDigest> tensors) override {
    inner_.describe_state(state, tensors);
  }

 protected:
  Observer& inner_;
};

// Sends the event with its place from `position`. A step given in the event (not 0) stays.
inline void emit(Observer& observer, const Position& position, Event event) {
  event.attempt = position.attempt;
  event.rank = static_cast<std::int16_t>(position.rank);
  event.phase = position.phase;
  if (event.step == 0) event.step = position.step;
  observer.event(event);
}

}  // namespace firedrill

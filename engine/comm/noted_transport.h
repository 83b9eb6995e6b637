// NotedTransport: remembers which peer the rank last gave up on, so that whoever explains a failure can say for whom it
// waited. Nothing else changes.
#pragma once

#include <optional>

#include "engine/seam/transport.h"

namespace firedrill {

class NotedTransport final : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;
  Status send(int peer, Tag tag, const Value& value, Time deadline) override {
    waits_for_ = peer;
    Status sent = inner_.send(peer, tag, value, deadline);
    waits_for_.reset();
    if (!sent) gave_up_on_ = peer;
    return sent;
  }
  Result<Value> recv(int peer, Tag tag, Time deadline) override {
    waits_for_ = peer;
    Result<Value> received = inner_.recv(peer, tag, deadline);
    waits_for_.reset();
    if (!received) gave_up_on_ = peer;
    return received;
  }

  std::optional<int> gave_up_on() const { return gave_up_on_; }  // a rank
  // A rank that a call under way waits for: also of a task that was cut short and never came back from it.
  std::optional<int> waits_for() const { return waits_for_; }

 private:
  std::optional<int> gave_up_on_;
  std::optional<int> waits_for_;
};

}  // namespace firedrill

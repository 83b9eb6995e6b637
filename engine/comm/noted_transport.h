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
    Status sent = inner_.send(peer, tag, value, deadline);
    if (!sent) gave_up_on_ = peer;
    return sent;
  }
  Result<Value> recv(int peer, Tag tag, Time deadline) override {
    Result<Value> received = inner_.recv(peer, tag, deadline);
    if (!received) gave_up_on_ = peer;
    return received;
  }

  std::optional<int> gave_up_on() const { return gave_up_on_; }  // a rank

 private:
  std::optional<int> gave_up_on_;
};

}  // namespace firedrill

// DigestedTransport: the sender's digest of each payload travels with it and is compared at receipt, so that what was
// changed on its way is noticed before anything is computed from it. Stands above whatever may corrupt a message. Both
// ends must have it. On for layouts with guard: check; changes no bits.
//
// Threads and errors: as the transport below; corrupted, naming both ranks, the group's number, the call and the round
// (collectives_over_transport adds operation, purpose and group).
#pragma once

#include "engine/seam/transport.h"

namespace firedrill {

class DigestedTransport final : public ForwardingTransport {
 public:
  explicit DigestedTransport(Transport& inner) : ForwardingTransport(inner) {}
  Status send(int peer, Tag tag, const Value& value, Time deadline) override;
  Result<Value> recv(int peer, Tag tag, Time deadline) override;
};

}  // namespace firedrill

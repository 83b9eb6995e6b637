// Arrivals: how long messages were under way, for accounts only. A transport that can tell is one, too.
//
// Threads: as of the transport.
#pragma once

#include <optional>

#include "engine/seam/transport.h"

namespace firedrill {

class Arrivals {
 public:
  virtual ~Arrivals() = default;
  // Of the message with this tag that was taken last of the peer: from its send to its arrival here, which may lie
  // before the recv. Nothing: another one was taken since. Between nodes it is as good as their clocks agree.
  virtual std::optional<Duration> under_way(int peer, Tag tag) const = 0;
};

}  // namespace firedrill

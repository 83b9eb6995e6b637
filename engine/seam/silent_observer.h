// SilentObserver: an Observer for where nobody looks at what the ranks say.
#pragma once

#include "engine/seam/observer.h"

namespace firedrill {

class SilentObserver final : public Observer {
 public:
  void event(const Event&) override {}
  NameId intern(std::string_view) override { return 0; }
  bool knows_state(const Digest&) override { return true; }
  void describe_state(const Digest&, std::span<const NamedDigest>) override {}
};

}  // namespace firedrill

// Ranks meet under the number of starts that their own host remembers, and a fresh host remembers none.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class RendezvousByLocalCount final : public LivenessRules {
 public:
  int rendezvous_number(int, int host_starts) const override { return host_starts; }
};

}  // namespace

std::unique_ptr<LivenessRules> make_rendezvous_by_local_count() { return std::make_unique<RendezvousByLocalCount>(); }

}  // namespace firedrill

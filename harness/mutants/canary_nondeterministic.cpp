// Not deterministic: before each shard it asks for the free space as often as the last digits of a real clock say.
// Nothing that it does is wrong, and no two runs of it take the same time.
#include <chrono>

#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class Nondeterministic final : public Protocol {
 protected:
  Status write_shard(const CheckpointContext& ctx, const std::string& path, const Value& bytes) override {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    for (auto looks = now / std::chrono::nanoseconds(1) / 10 % 97; looks > 0; --looks) {
      if (const auto room = ctx.parts.files.free_space(); !room) return room.error();
    }
    return Protocol::write_shard(ctx, path, bytes);
  }
};

}  // namespace

std::unique_ptr<Protocol> make_canary_nondeterministic() { return std::make_unique<Nondeterministic>(); }

}  // namespace firedrill

#include "engine/seam/position.h"

#include <array>

namespace firedrill {
namespace {

constexpr std::array<std::string_view, phase_count> names = {
    "none",   "input",    "forward", "backward", "exchange", "optimizer", "save",
    "commit", "validate", "retire",  "find",     "restore",  "rendezvous"};

}  // namespace

std::string_view to_string(Phase phase) { return names[static_cast<std::size_t>(phase)]; }

std::optional<Phase> phase_from(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Phase>(i);
  }
  return std::nullopt;
}

}  // namespace firedrill

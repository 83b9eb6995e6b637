// What a scenario's choices are called.
#include "harness/scenario/scenario.h"

namespace firedrill {

std::string_view to_string(WorldKind world) { return world == WorldKind::sim ? "sim" : "process"; }

std::optional<WorldKind> world_from(std::string_view name) {
  if (name == "sim") return WorldKind::sim;
  if (name == "process") return WorldKind::process;
  return std::nullopt;
}

std::string_view to_string(CrashProfile profile) {
  switch (profile) {
    case CrashProfile::posix: return "posix";
    case CrashProfile::ext4: return "ext4";
    case CrashProfile::nfs: return "nfs";
  }
  return "?";
}

std::string to_string(const Expectation& expect) {
  switch (expect.kind) {
    case Expectation::Kind::pass: return "pass";
    case Expectation::Kind::fail: return "fail: " + expect.property;
    case Expectation::Kind::liveness: return "liveness";
    case Expectation::Kind::refuse: return "refuse";
  }
  return "pass";
}

}  // namespace firedrill

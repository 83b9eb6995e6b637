// Removes what a probe of the storage has made, in a process of its own: the one that made it may hang or be killed.
#include <fmt/format.h>

#include <filesystem>

#include "harness/preflight/probes.h"

namespace firedrill::preflight {

Json probe_removal(const Probe& probe) {
  const auto path = probe.work.at("path").get<std::string>();
  probe.line.doing(fmt::format("removing {}", path));
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) {
    throw ProbeFailed({.why = fmt::format("cannot remove {}: {}", path, error.message()),
                       .needed = "a directory that can be removed",
                       .remedy = "look at its rights"});
  }
  return nullptr;
}

}  // namespace firedrill::preflight

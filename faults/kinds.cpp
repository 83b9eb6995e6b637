#include "faults/kinds.h"

#include "engine/base/check.h"

namespace firedrill {
namespace {

struct Kind {
  FaultKindInfo info;
  TakeEffect take_effect;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> list = {
      {{.kind = FaultKind::kill, .name = "kill", .summary = "a rank dies at once (SIGKILL)", .in_process_world = true},
       take_kill},
      {{.kind = FaultKind::kill_node,
        .name = "kill_node",
        .summary = "all ranks of the rank's node die at once; what the node had not synced may be lost",
        .in_process_world = false},
       take_kill_node},
      {{.kind = FaultKind::io_error,
        .name = "io_error",
        .summary = "a file operation fails (EIO)",
        .in_process_world = true},
       take_io_error},
      {{.kind = FaultKind::no_space,
        .name = "no_space",
        .summary = "a write, create or make_directory finds the storage full (ENOSPC)",
        .in_process_world = true},
       take_no_space},
  };
  return list;
}

}  // namespace

const std::vector<FaultKindInfo>& fault_kinds() {
  static const std::vector<FaultKindInfo> infos = [] {
    std::vector<FaultKindInfo> list;
    for (const Kind& kind : kinds()) list.push_back(kind.info);
    return list;
  }();
  return infos;
}

TakeEffect effect_of(FaultKind kind) {
  for (const Kind& candidate : kinds()) {
    if (candidate.info.kind == kind) return candidate.take_effect;
  }
  fail_check(__FILE__, __LINE__, "kind", "a kind of fault that is not in the list");
}

}  // namespace firedrill

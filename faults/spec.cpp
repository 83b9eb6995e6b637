#include "faults/spec.h"

#include <fmt/format.h>

#include <array>

#include "engine/base/check.h"

namespace firedrill {

std::string_view to_string(SeamOp op) {
  constexpr std::array<std::string_view, seam_op_count> names = {"file", "compute",    "send",
                                                                 "recv", "collective", "store"};
  return names[static_cast<std::size_t>(op)];
}

std::string_view to_string(When when) { return when == When::before ? "before" : "after"; }

std::string_view to_string(FaultKind kind) {
  for (const FaultKindInfo& info : fault_kinds()) {
    if (info.kind == kind) return info.name;
  }
  fail_check(__FILE__, __LINE__, "kind", "a kind of fault that is not in the list");
}

std::string describe(const FaultSpec& fault) {
  const Where& at = fault.at;
  std::string text = fmt::format("{} rank {}", to_string(fault.kind), at.rank);
  if (fault.kind == FaultKind::kill_node) text = fmt::format("kill_node of rank {}", at.rank);
  if (fault.kind == FaultKind::io_error || fault.kind == FaultKind::no_space) {
    text = fmt::format("{} on rank {}", to_string(fault.kind), at.rank);
  }
  if (at.step) text += fmt::format(" at step {}", *at.step);
  if (at.phase) text += fmt::format(", {}", to_string(*at.phase));
  const std::string_view call = at.file_op ? to_string(*at.file_op) : at.op ? to_string(*at.op) : "call";
  text += fmt::format(", {}{} {}", at.when == When::after ? "after " : "", call, at.nth);
  if (!at.path.empty()) text += fmt::format(" of {}", at.path);
  if (!at.attempt) {
    text += ", in any attempt";
  } else if (*at.attempt != 1) {
    text += fmt::format(", in attempt {}", *at.attempt);
  }
  if (fault.times == 0) text += ", without end";
  if (fault.times > 1) text += fmt::format(", {} times", fault.times);
  if (fault.lose_unsynced_data) text += ", losing unsynced data";
  if (fault.lose_unsynced_names) text += ", losing unsynced names";
  return text;
}

}  // namespace firedrill

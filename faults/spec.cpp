#include "faults/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/base/units.h"

namespace firedrill {

std::string_view to_string(SeamOp op) {
  constexpr std::array<std::string_view, seam_op_count> names = {"file",       "compute", "send", "recv",
                                                                 "collective", "store",   "input"};
  return names[static_cast<std::size_t>(op)];
}

std::string_view to_string(When when) { return when == When::before ? "before" : "after"; }

std::string_view to_string(Part part) {
  constexpr std::array<std::string_view, 3> names = {"first", "middle", "last"};
  return names[static_cast<std::size_t>(part)];
}

std::string_view to_string(Landing landing) { return landing == Landing::offset ? "offset" : "file"; }

std::string_view to_string(Target target) {
  constexpr std::array<std::string_view, 4> names = {"activation", "gradient", "parameter", "moment"};
  return names[static_cast<std::size_t>(target)];
}

std::string_view to_string(PayloadDamage damage) {
  constexpr std::array<std::string_view, 3> names = {"bit", "nan", "wrong_shard"};
  return names[static_cast<std::size_t>(damage)];
}

std::string_view to_string(FaultKind kind) { return info_of(kind).name; }

namespace {

std::string described_link(const FaultSpec& fault) {
  std::string text;
  if (fault.peer) text += fmt::format(", to rank {}", *fault.peer);
  if (!fault.group.empty()) text += fmt::format(", in group {}", fault.group);
  if (fault.one_way) text += ", one way";
  if (fault.delay > Duration{0}) text += fmt::format(", by {}", format_duration(fault.delay));
  if (fault.kind == FaultKind::flaky_link) text += fmt::format(", one in {}", fault.every);
  if (fault.lasts > Duration{0}) text += fmt::format(", for {}", format_duration(fault.lasts));
  return text;
}

// What the options of its kind say.
std::string described_options(const FaultSpec& fault) {
  switch (fault.kind) {
    case FaultKind::kill_node:
      return fmt::format("{}{}", fault.lose_unsynced_data ? ", losing unsynced data" : "",
                         fault.lose_unsynced_names ? ", losing unsynced names" : "");
    case FaultKind::torn_write: return fmt::format(", without its {} third", to_string(fault.lost));
    case FaultKind::misdirected_write:
      return fault.lands_in == Landing::file ? ", into another file" : ", to another offset";
    case FaultKind::bit_flip:
    case FaultKind::nan: return fmt::format(", in {}", to_string(fault.target));
    case FaultKind::corrupt_payload: return fmt::format(", {}", to_string(fault.damage));
    case FaultKind::slow:
    case FaultKind::slow_shard:
    case FaultKind::slow_disk: return fmt::format(", by {}", format_duration(fault.delay));
    case FaultKind::late_visibility: {
      std::string text;
      if (fault.looks > 0 || fault.delay == Duration{0}) text = fmt::format(", for {} looks", std::max(1, fault.looks));
      if (fault.delay > Duration{0}) text += fmt::format(", for {}", format_duration(fault.delay));
      return text;
    }
    case FaultKind::exit: return fmt::format(", with code {}", fault.code);
    case FaultKind::clock_skew:
      return fault.behind > Duration{0} ? fmt::format(", {} behind", format_duration(fault.behind))
                                        : fmt::format(", {} ahead", format_duration(fault.ahead));
    case FaultKind::delay_message:
    case FaultKind::drop_message:
    case FaultKind::duplicate_message:
    case FaultKind::late_message:
    case FaultKind::partition:
    case FaultKind::slow_link:
    case FaultKind::flaky_link: return described_link(fault);
    default: return {};
  }
}

}  // namespace

std::string describe(const FaultSpec& fault) {
  const Where& at = fault.at;
  std::string text = fmt::format("{} rank {}", to_string(fault.kind), at.rank);
  if (fault.kind == FaultKind::kill_node) text = fmt::format("kill_node of rank {}", at.rank);
  if (fault.kind != FaultKind::kill_node && fault.kind != FaultKind::kill) {
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
  return text + described_options(fault);
}

}  // namespace firedrill

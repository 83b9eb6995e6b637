// nothing_from_an_old_attempt: once a new attempt has started, the old one has no effect any more.
//
// Verified: after the start of attempt n, no operation of an older attempt changes the disk, no rank of it completes a
// step, publishes, acknowledges, retires or takes a message; and every message taken was sent in the taker's attempt.
// The process world tells of the first message that a rank takes from each peer, and of each change of attempt behind
// it. Not verified: operations of an old attempt that were refused (fenced, or its rank dead), since they had no effect
// and the worlds do not tell them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "engine/base/error.h"
#include "engine/seam/file_system.h"
#include "harness/check/all.h"

namespace firedrill {
namespace {

constexpr std::array<EventKind, 9> effects = {EventKind::disk_changed,  EventKind::step_done, EventKind::message_taken,
                                              EventKind::shard_written, EventKind::committed, EventKind::validated,
                                              EventKind::acknowledged,  EventKind::retired,   EventKind::rejected};

// Histories of other programs may tell refused operations too.
bool refused(const Event& event) {
  return event.kind == EventKind::disk_changed && (event.c == 1 + static_cast<std::int64_t>(Code::dead) ||
                                                   event.c == 1 + static_cast<std::int64_t>(Code::fenced));
}

std::string what(const Case& run, const Event& event) {
  if (event.kind != EventKind::disk_changed) return std::string(to_string(event.kind));
  const bool known = event.a >= 0 && event.a < file_op_count;
  return fmt::format("{} of {}", known ? to_string(static_cast<FileOp>(event.a)) : std::string_view("an operation"),
                     run.history().text(event.name));
}

// Of some events of a kind, while `newest` is the highest number of an attempt that has started.
std::string check_span(const Case& run, EventKind kind, std::span<const std::uint32_t> span, std::int32_t newest,
                       std::int64_t& checked) {
  const bool of_message = kind == EventKind::message_taken;
  for (const std::uint32_t& position : span) {
    const Event& event = run.event(position);
    const bool from_another = of_message && event.b != event.attempt;
    const bool is_old = event.rank >= 0 && event.attempt < newest;
    if (!from_another && !is_old) continue;
    if (!from_another && refused(event)) continue;
    checked += &position - span.data() + 1;
    if (!from_another)
      return fmt::format("{}: {} after attempt {} has started", place_of(event), what(run, event), newest);
    return fmt::format("{}: takes a message that rank {} sent in attempt {}", place_of(event), event.a, event.b);
  }
  checked += std::ssize(span);
  return {};
}

std::string check_kind(const Case& run, EventKind kind, std::int64_t& checked) {
  const auto attempts = run.attempts();
  const std::size_t first = attempts.empty() ? run.history().size() : attempts.front().begin;
  std::int32_t newest = 0;
  std::string wrong = check_span(run, kind, run.of(kind, 0, first), newest, checked);
  for (const AttemptSpan& attempt : attempts) {
    if (!wrong.empty()) break;
    newest = std::max(newest, attempt.number);
    wrong = check_span(run, kind, run.of(kind, attempt.begin, attempt.end), newest, checked);
  }
  return wrong;
}

}  // namespace

Verdict judge_nothing_from_an_old_attempt(const Case& run) {
  std::int64_t checked = 0;
  for (const EventKind kind : effects) {
    std::string wrong = check_kind(run, kind, checked);
    if (!wrong.empty()) return Verdict::fail(checked, std::move(wrong));
  }
  const std::size_t messages = run.history().of(EventKind::message_taken).size();
  return Verdict::pass(checked, fmt::format("messages: {}", messages));
}

}  // namespace firedrill

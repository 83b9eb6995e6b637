#include "harness/check/waits.h"

#include <algorithm>

#include "engine/seam/collective_op.h"

namespace firedrill {
namespace {

bool is_member(std::string_view stream, int rank) {
  const std::vector<int> ranks = ranks_of_stream(stream);
  return std::ranges::find(ranks, rank) != ranks.end();
}

// It waits for a peer to issue something; who sends does not, and a call that nobody gave up was only cut short.
bool is_wait(const IssuedCall& call) { return call.waited_for >= 0 && !call.call.starts_with("send"); }

}  // namespace

std::vector<Waiting> waits_of(const AttemptCalls& calls) {
  std::map<std::pair<std::string_view, std::int64_t>, Waiting> by_call;
  for (const auto& [rank, dump] : calls.dumps) {
    for (const bool aside : {false, true}) {
      const IssuedCall* call = dump.current(aside);
      if (!call) continue;
      Waiting& waiting = by_call[{call->stream, call->sequence}];
      if (!waiting.call) waiting.call = call;
      waiting.waiting.push_back(rank);
    }
  }
  std::vector<Waiting> waits;
  for (auto& [key, waiting] : by_call) {
    for (const int member : ranks_of_stream(key.first)) {
      if (!calls.issued(member, key.first, key.second)) waiting.missing.push_back(member);
    }
    if (waiting.missing.empty()) continue;
    // No sort: what most ranks did need not be an order.
    const auto later = std::ranges::find_if(
        waits, [&](const Waiting& other) { return issued_before(calls, *waiting.call, *other.call); });
    waits.insert(later, std::move(waiting));
  }
  return waits;
}

const Waiting* missed_at(const std::vector<Waiting>& waits, int rank, std::int64_t step, Phase phase, bool aside) {
  const auto found = std::ranges::find_if(waits, [&](const Waiting& waiting) {
    const IssuedCall& call = *waiting.call;
    return call.aside == aside && call.step == step && call.phase == phase &&
           std::ranges::find(waiting.missing, rank) != waiting.missing.end();
  });
  return found == waits.end() ? nullptr : &*found;
}

const IssuedCall* wait_of(const AttemptCalls& calls, int rank, bool aside) {
  const auto dump = calls.dumps.find(rank);
  const IssuedCall* current = dump == calls.dumps.end() ? nullptr : dump->second.current(aside);
  return current && current->waited_for >= 0 ? current : nullptr;
}

bool is_past(const AttemptCalls& calls, int rank, const IssuedCall& call) {
  const auto dump = calls.dumps.find(rank);
  const IssuedCall* own = dump == calls.dumps.end() ? nullptr : dump->second.find(call.stream, call.sequence);
  if (own) return own->completed || (own->compared && !call.compared);
  return calls.issued(rank, call.stream, call.sequence);
}

namespace {

// What a step leaves is published behind its last call.
bool is_published(const AttemptCalls& calls, int rank, const IssuedCall& call) {
  const IssuedCall* const publish = wait_of(calls, rank, true);
  return !call.aside && is_of_training(call.phase) && publish && publish->step >= call.step;
}

}  // namespace

bool left_out(const AttemptCalls& calls, int rank, const IssuedCall& call) {
  if (is_published(calls, rank, call)) return true;
  const IssuedCall* const own = wait_of(calls, rank, call.aside);
  if (!own || own->stream != call.stream || own->sequence >= call.sequence) return false;
  return std::ranges::any_of(calls.dumps, [&](const auto& dump) {
    const IssuedCall* const current = dump.second.current(call.aside);
    if (!current || current->stream != call.stream || current->sequence != call.sequence) return false;
    const IssuedCall* const put_off = dump.second.find(own->stream, own->sequence);
    return put_off && !put_off->completed && put_off->waited_for < 0 && put_off->compared == own->compared;
  });
}

std::optional<CrossWait> cross_wait(const AttemptCalls& calls) {
  for (const auto& [first, dump] : calls.dumps) {
    for (const auto& [other, other_dump] : calls.dumps) {
      if (other <= first) continue;
      for (const bool aside : {false, true}) {
        const IssuedCall* const own = dump.current(aside);
        const IssuedCall* const others = other_dump.current(aside);
        if (!own || !others || !is_wait(*own) || !is_wait(*others)) continue;
        if (!is_member(own->stream, other) || !is_member(others->stream, first)) continue;
        const bool known =
            calls.issued(other, own->stream, own->sequence) || calls.issued(first, others->stream, others->sequence);
        if (!known) return CrossWait{.first = first, .other = other, .of_first = own, .of_other = others};
      }
    }
  }
  return std::nullopt;
}

}  // namespace firedrill

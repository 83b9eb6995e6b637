#include "harness/check/detours.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "engine/seam/collective_op.h"

namespace firedrill {
namespace {

std::string_view purpose_of(std::string_view call) { return call.substr(call.rfind(' ') + 1); }

bool is_that_call(const IssuedCall* issued, const NamedCall& call) {
  return issued != nullptr && purpose_of(issued->call) == purpose_of(call.call);
}

// Another member made the call that was due, and the rank did not.
bool is_missed(const AttemptCalls& calls, int rank, const NamedCall& due) {
  const auto has_made = [&](const Dump& dump) { return is_that_call(dump.find(due.stream, due.sequence), due); };
  return !has_made(calls.dumps.at(rank)) && std::ranges::any_of(calls.dumps, [&](const auto& dump) {
    return dump.first != rank && has_made(dump.second);
  });
}

// Of a call that was either left out or made twice: the rank's own calls go on in the stream in which one is missing or
// one too many, until that shows.
bool is_again(const Dump& dump, const Detour& detour) {
  if (detour.again != Detour::Again::perhaps) return detour.again == Detour::Again::yes;
  const IssuedCall* const current = dump.current(false);
  return current != nullptr && current->stream == detour.came.stream && current->stream != detour.due->stream;
}

bool is_of_training(Phase phase) { return phase >= Phase::input && phase <= Phase::optimizer; }

std::vector<const IssuedCall*> of_step(const Dump& dump, std::int64_t step) {
  std::vector<const IssuedCall*> calls;
  for (const IssuedCall& call : dump.calls) {
    if (call.step == step && !call.aside && is_of_training(call.phase)) calls.push_back(&call);
  }
  return calls;
}

// What came next with `other`, if it has made all the calls of `own`, as far back as both have told theirs. Calls of
// micro-batches repeat, so its last such way counts.
const IssuedCall* next_of_other(const std::vector<const IssuedCall*>& own,
                                const std::vector<const IssuedCall*>& other) {
  const auto same = [](const IssuedCall* a, const IssuedCall* b) { return alike(*a, *b); };
  for (std::ptrdiff_t made = std::ssize(other) - 1; made > 0; --made) {
    const auto known = std::min(std::ssize(own), made);
    const auto end = other.begin() + made;
    if (known > 0 && std::equal(own.end() - known, own.end(), end - known, same)) return *end;
  }
  return nullptr;
}

// The stream of that kind which the rank is in, on that side of it.
std::string_view stream_like(const AttemptCalls& calls, int rank, int other, std::string_view others_stream) {
  const std::vector<int> others_ranks = ranks_of_stream(others_stream);
  const auto place = std::ranges::find(others_ranks, other) - others_ranks.begin();
  const bool between_two = others_stream.find('>') != std::string_view::npos;
  std::string_view found;
  for (const auto& [teller, dump] : calls.dumps) {
    for (const IssuedCall& call : dump.calls) {
      if (kind_of(call.stream) != kind_of(others_stream)) continue;
      const std::vector<int> ranks = ranks_of_stream(call.stream);
      const auto own_place = std::ranges::find(ranks, rank) - ranks.begin();
      if (own_place == std::ssize(ranks) || (between_two && own_place != place)) continue;
      found = call.stream;
    }
  }
  return found;
}

}  // namespace

std::optional<NamedCall> due_by_others(const AttemptCalls& calls, int rank, const GivenUp& where) {
  const std::vector<const IssuedCall*> own = of_step(calls.dumps.at(rank), where.step);
  std::optional<NamedCall> due;
  for (const auto& [other, dump] : calls.dumps) {
    const IssuedCall* const next = other == rank ? nullptr : next_of_other(own, of_step(dump, where.step));
    if (next == nullptr || next->phase != where.phase) continue;
    if (due && due->call != next->call) return std::nullopt;
    const std::string_view stream = stream_like(calls, rank, other, next->stream);
    if (stream.empty()) continue;
    due = NamedCall{.stream = stream,
                    .sequence = calls.next_of(rank, stream),
                    .step = next->step,
                    .phase = next->phase,
                    .call = next->call};
  }
  return due;
}

std::optional<FoundDetour> first_detour(const AttemptCalls& calls) {
  std::optional<FoundDetour> first;
  for (const auto& [rank, dump] : calls.dumps) {
    if (!dump.detour) continue;
    const Detour& detour = *dump.detour;
    const bool again = is_again(dump, detour);
    if (!again && !(detour.due && is_missed(calls, rank, *detour.due))) continue;
    const NamedCall& call = again ? detour.came : *detour.due;
    const bool earlier = !first || std::tuple(call.step, call.phase) < std::tuple(first->call.step, first->call.phase);
    if (earlier) first = FoundDetour{.rank = rank, .call = call, .again = again, .came = detour.came.call};
  }
  return first;
}

}  // namespace firedrill

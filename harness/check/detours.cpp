#include "harness/check/detours.h"

#include <algorithm>
#include <tuple>

#include "harness/check/first_step.h"

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

}  // namespace

std::optional<FoundDetour> first_detour(const AttemptCalls& calls) {
  std::optional<FoundDetour> first;
  for (const auto& [rank, dump] : calls.dumps) {
    const std::optional<Detour> found = dump.detour ? dump.detour : detour_by_others(calls, rank);
    if (!found) continue;
    const Detour& detour = *found;
    const bool again = is_again(dump, detour);
    if (!again && !(detour.due && is_missed(calls, rank, *detour.due))) continue;
    const NamedCall& call = again ? detour.came : *detour.due;
    const bool earlier = !first || std::tuple(call.step, call.phase) < std::tuple(first->call.step, first->call.phase);
    if (earlier) first = FoundDetour{.rank = rank, .call = call, .again = again, .came = detour.came.call};
  }
  return first;
}

}  // namespace firedrill

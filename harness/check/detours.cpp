#include "harness/check/detours.h"

#include <algorithm>
#include <tuple>

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

// Another member made that call again as well.
bool is_shared(const AttemptCalls& calls, int rank, const NamedCall& came) {
  return std::ranges::any_of(calls.dumps, [&](const auto& dump) {
    return dump.first != rank && dump.second.detour && dump.second.detour->again &&
           is_that_call(dump.second.find(came.stream, came.sequence), came);
  });
}

}  // namespace

std::optional<FoundDetour> first_detour(const AttemptCalls& calls) {
  std::optional<FoundDetour> first;
  for (const auto& [rank, dump] : calls.dumps) {
    if (!dump.detour) continue;
    const Detour& detour = *dump.detour;
    const bool astray =
        detour.again ? !is_shared(calls, rank, detour.came) : detour.due && is_missed(calls, rank, *detour.due);
    if (!astray) continue;
    const NamedCall& call = detour.again ? detour.came : *detour.due;
    const bool earlier = !first || std::tuple(call.step, call.phase) < std::tuple(first->call.step, first->call.phase);
    if (earlier) first = FoundDetour{.rank = rank, .call = call, .detour = &detour};
  }
  return first;
}

}  // namespace firedrill

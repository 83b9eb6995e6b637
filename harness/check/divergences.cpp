#include "harness/check/divergences.h"

#include <algorithm>
#include <tuple>

#include "harness/check/first_step.h"

namespace firedrill {
namespace {

std::string_view purpose_of(std::string_view call) { return call.substr(call.rfind(' ') + 1); }

bool is_that_call(const IssuedCall* issued, const NamedCall& call) {
  return issued != nullptr && issued->step == call.step && issued->phase == call.phase &&
         purpose_of(issued->call) == purpose_of(call.call);
}

// The step is of another kind than those before it for that rank as well.
bool is_shared(const AttemptCalls& calls, int rank, const Divergence& divergence) {
  const auto same = [](const std::optional<NamedCall>& a, const std::optional<NamedCall>& b) {
    if (!a || !b) return !a && !b;
    return a->step == b->step && a->call == b->call && kind_of(a->stream) == kind_of(b->stream);
  };
  return std::ranges::any_of(calls.dumps, [&](const auto& dump) {
    return dump.first != rank && std::ranges::any_of(dump.second.divergences, [&](const Divergence& other) {
             return same(other.due, divergence.due) && same(other.came, divergence.came);
           });
  });
}

// Another member made that call.
bool is_made_by_another(const AttemptCalls& calls, int rank, const NamedCall& call) {
  return std::ranges::any_of(calls.dumps, [&](const auto& dump) {
    return dump.first != rank && is_that_call(dump.second.find(call.stream, call.sequence), call);
  });
}

// With as many elements, as far as the rank's own record tells: a receiver knows them only afterwards.
bool is_made_alike_by_another(const AttemptCalls& calls, int rank, const NamedCall& call) {
  const IssuedCall* const own = calls.dumps.at(rank).find(call.stream, call.sequence);
  const bool any_size = own == nullptr || own->call.starts_with("recv");
  return std::ranges::any_of(calls.dumps, [&](const auto& dump) {
    const IssuedCall* const issued = dump.second.find(call.stream, call.sequence);
    return dump.first != rank && is_that_call(issued, call) && (any_size || issued->elements == own->elements);
  });
}

// Another member made the call that was due, and the rank did not. What has left its records nobody can tell.
bool is_missed(const AttemptCalls& calls, int rank, const NamedCall& due) {
  const IssuedCall* const own = calls.dumps.at(rank).find(due.stream, due.sequence);
  const bool forgotten = own == nullptr && calls.issued(rank, due.stream, due.sequence);
  return !forgotten && !is_that_call(own, due) && is_made_by_another(calls, rank, due);
}

// Of a call that was either left out or made twice: the rank's own calls go on in the stream in which one is missing or
// one too many, until that shows.
bool is_again(const Dump& dump, const Divergence& divergence) {
  if (divergence.again != Divergence::Again::perhaps) return divergence.again == Divergence::Again::yes;
  const IssuedCall* const current = dump.current(divergence.came->stream.starts_with("publish"));
  return current != nullptr && current->stream == divergence.came->stream && current->stream != divergence.due->stream;
}

std::optional<FoundDivergence> judged(const AttemptCalls& calls, int rank, const Divergence& divergence) {
  if (is_shared(calls, rank, divergence)) return std::nullopt;
  FoundDivergence found{.rank = rank, .call = {}, .came = divergence.came ? divergence.came->call : ""};
  if (divergence.came && is_again(calls.dumps.at(rank), divergence)) {
    found.again = true;
    found.call = *divergence.came;
    if (is_made_alike_by_another(calls, rank, found.call)) return std::nullopt;
    return found;
  }
  if (!divergence.due || !is_missed(calls, rank, *divergence.due)) return std::nullopt;
  found.call = *divergence.due;
  return found;
}

}  // namespace

std::optional<FoundDivergence> first_divergence(const AttemptCalls& calls) {
  std::optional<FoundDivergence> first;
  const auto consider = [&](int rank, const Divergence& divergence) {
    const std::optional<FoundDivergence> found = judged(calls, rank, divergence);
    const auto place = [](const FoundDivergence& one) { return std::tuple(one.call.step, one.call.phase); };
    if (found && (!first || place(*found) < place(*first))) first = found;
  };
  for (const auto& [rank, dump] : calls.dumps) {
    for (const Divergence& divergence : dump.divergences) consider(rank, divergence);
    if (calls.past_a_step.contains(rank)) continue;
    if (const auto divergence = divergence_by_others(calls, rank)) consider(rank, *divergence);
  }
  return first;
}

}  // namespace firedrill

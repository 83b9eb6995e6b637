#include "harness/check/first_step.h"

#include <algorithm>
#include <vector>

#include "engine/seam/collective_op.h"

namespace firedrill {
namespace {

bool is_of_training(Phase phase) { return phase >= Phase::input && phase <= Phase::optimizer; }

using Way = std::vector<const IssuedCall*>;

Way of_step(const Dump& dump, std::int64_t step) {
  Way calls;
  for (const IssuedCall& call : dump.calls) {
    if (call.step == step && !call.aside && is_of_training(call.phase)) calls.push_back(&call);
  }
  return calls;
}

bool same(const IssuedCall* a, const IssuedCall* b) { return alike(*a, *b); }

// What came next with `other`, if it has made all the calls of `own`, as far back as both have told theirs. Calls of
// micro-batches repeat, so its last such way counts.
const IssuedCall* next_of_other(const Way& own, const Way& other) {
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

// Two ways that are one up to `own[place]` and `other[others_place]`; as far back as both are told, by `length` calls.
struct Common {
  std::ptrdiff_t place = 0;
  std::ptrdiff_t others_place = 0;
  std::ptrdiff_t length = 0;
};
// Laid side by side where they go together longest; nothing if that is short.
std::optional<Common> common_way(const Way& own, const Way& other) {
  constexpr std::ptrdiff_t least = 4;
  std::optional<Common> longest;
  for (std::ptrdiff_t shift = -std::ssize(own); shift <= std::ssize(other); ++shift) {
    const std::ptrdiff_t begin = std::max<std::ptrdiff_t>(0, -shift);
    std::ptrdiff_t place = begin;
    while (place < std::ssize(own) && place + shift < std::ssize(other) && same(own[place], other[place + shift]))
      ++place;
    const std::ptrdiff_t length = place - begin;
    if (length >= least && (!longest || length > longest->length))
      longest = Common{.place = place, .others_place = place + shift, .length = length};
  }
  return longest;
}

// The calls from `place` on are those of the other way from `others_place` on, as far as both are told.
bool goes_on_alike(const Way& own, std::ptrdiff_t place, const Way& other, std::ptrdiff_t others_place) {
  const std::ptrdiff_t both = std::min(std::ssize(own) - place, std::ssize(other) - others_place);
  return both <= 0 || std::equal(own.begin() + place, own.begin() + place + both, other.begin() + others_place, same);
}

// How many calls of the stream the rank had issued ahead of `call`.
std::int64_t issued_ahead_of(const AttemptCalls& calls, int rank, std::string_view stream, const IssuedCall* call) {
  std::int64_t issued = -1;
  for (const IssuedCall& own : calls.dumps.at(rank).calls) {
    if (&own == call) break;
    if (own.stream == stream) issued = own.sequence + 1;
  }
  if (issued >= 0) return issued;
  const auto told = calls.told.find(rank);
  if (told == calls.told.end()) return 0;
  const auto completed = told->second.find(stream);
  return completed == told->second.end() ? 0 : completed->second;
}

// It has told the calls of a step before, of the groups that it trains in.
bool has_made_a_step(const AttemptCalls& calls, int rank, const Way& own) {
  const auto told = calls.told.find(rank);
  return told != calls.told.end() &&
         std::ranges::any_of(own, [&](const IssuedCall* call) { return told->second.contains(call->stream); });
}

struct Parting {
  int other = 0;
  Way way;  // of the other
  Common common;
};

NamedCall named(const IssuedCall& call) {
  return {.stream = call.stream, .sequence = call.sequence, .step = call.step, .phase = call.phase, .call = call.call};
}

std::optional<Detour> detour_at(const AttemptCalls& calls, int rank, const Way& own, const Parting& parting) {
  const auto [place, others_place, length] = parting.common;
  const IssuedCall& came = *own[place];
  NamedCall due = named(*parting.way[others_place]);
  due.stream = stream_like(calls, rank, parting.other, due.stream);
  if (due.stream.empty()) return std::nullopt;
  due.sequence = issued_ahead_of(calls, rank, due.stream, &came);
  const bool left_out = goes_on_alike(own, place, parting.way, others_place + 1);
  const bool repeated = same(own[place - 1], &came) && goes_on_alike(own, place + 1, parting.way, others_place);
  const Detour::Again again = !repeated ? Detour::Again::no : left_out ? Detour::Again::perhaps : Detour::Again::yes;
  return Detour{.due = due, .came = named(came), .again = again};
}

}  // namespace

std::optional<NamedCall> due_by_others(const AttemptCalls& calls, int rank, const GivenUp& where) {
  const Way own = of_step(calls.dumps.at(rank), where.step);
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

std::optional<Detour> detour_by_others(const AttemptCalls& calls, int rank) {
  const Dump& dump = calls.dumps.at(rank);
  const auto last = std::ranges::find_if(dump.calls.rbegin(), dump.calls.rend(), [](const IssuedCall& call) {
    return !call.aside && is_of_training(call.phase);
  });
  if (last == dump.calls.rend()) return std::nullopt;
  const Way own = of_step(dump, last->step);
  if (has_made_a_step(calls, rank, own)) return std::nullopt;

  // Who parts from it where, and who comes along: the others must be more.
  std::optional<Parting> first;
  int there = 0;
  int along = 1;
  for (const auto& [other, others_dump] : calls.dumps) {
    if (other == rank) continue;
    const Way others = of_step(others_dump, last->step);
    const std::optional<Common> common = common_way(own, others);
    if (!common) continue;
    const bool parts = common->place < std::ssize(own) && common->others_place < std::ssize(others);
    if (!parts) continue;
    const Parting parting{.other = other, .way = others, .common = *common};
    if (!first || common->place < first->common.place) {
      along += there;  // those who part later
      there = 0;
      first = parting;
    }
    const bool same_due = same(parting.way[common->others_place], first->way[first->common.others_place]);
    (common->place == first->common.place && same_due ? there : along) += 1;
  }
  if (!first || there <= along) return std::nullopt;
  return detour_at(calls, rank, own, *first);
}

}  // namespace firedrill

#include "harness/check/first_step.h"

#include <algorithm>
#include <vector>

#include "engine/seam/collective_op.h"

namespace firedrill {
namespace {

// The calls of one step of training, as far as they are told.
struct Way {
  std::vector<const IssuedCall*> calls;
  bool whole = false;  // from the step's first call on: something before it is told as well

  std::ptrdiff_t size() const { return std::ssize(calls); }
  const IssuedCall& at(std::ptrdiff_t place) const { return *calls[static_cast<std::size_t>(place)]; }
};

Way way_of(const Dump& dump, std::int64_t step) {
  Way way;
  for (const IssuedCall& call : dump.calls) {
    if (call.aside) continue;
    if (call.step == step && is_of_training(call.phase)) {
      way.calls.push_back(&call);
    } else if (way.calls.empty()) {
      way.whole = true;
    }
  }
  return way;
}

bool are_alike(const Way& own, std::ptrdiff_t begin, const Way& other, std::ptrdiff_t others_begin,
               std::ptrdiff_t count) {
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    if (!alike(own.at(begin + i), other.at(others_begin + i))) return false;
  }
  return true;
}

// What came next with `other`, if it has made all the calls of `own`, as far back as both have told theirs. Calls of
// micro-batches repeat, so its last such way counts.
const IssuedCall* next_of_other(const Way& own, const Way& other) {
  if (own.whole && other.whole) {
    const bool further = other.size() > own.size() && are_alike(own, 0, other, 0, own.size());
    return further ? &other.at(own.size()) : nullptr;
  }
  for (std::ptrdiff_t made = other.size() - 1; made > 0; --made) {
    const std::ptrdiff_t known = std::min(own.size(), made);
    if (known > 0 && are_alike(own, own.size() - known, other, made - known, known)) return &other.at(made);
  }
  return nullptr;
}

// The stream of that kind which the rank is in; of what goes from one to another the one on that side of it.
std::string_view stream_like(const AttemptCalls& calls, int rank, int other, std::string_view others_stream) {
  const auto goes_between_two = [](std::string_view stream) { return stream.find('>') != std::string_view::npos; };
  const auto place_in = [](std::string_view stream, int member) {
    const std::vector<int> ranks = ranks_of_stream(stream);
    const auto found = std::ranges::find(ranks, member);
    return found == ranks.end() ? std::ptrdiff_t{-1} : found - ranks.begin();
  };
  const bool between_two = goes_between_two(others_stream);
  const std::ptrdiff_t place = place_in(others_stream, other);
  for (const auto& [teller, dump] : calls.dumps) {
    for (const IssuedCall& call : dump.calls) {
      if (kind_of(call.stream) != kind_of(others_stream) || goes_between_two(call.stream) != between_two) continue;
      const std::ptrdiff_t own_place = place_in(call.stream, rank);
      if (between_two ? own_place == place : own_place >= 0) return call.stream;
    }
  }
  return {};
}

// Two ways that are alike up to their calls `place` and `others_place`.
struct Common {
  std::ptrdiff_t place = 0;
  std::ptrdiff_t others_place = 0;
};
// Laid side by side from their beginnings; where one has lost its own, where they go together longest, and nothing if
// that is short.
std::optional<Common> common_way(const Way& own, const Way& other) {
  const auto together = [&](std::ptrdiff_t begin, std::ptrdiff_t others_begin) {
    std::ptrdiff_t length = 0;
    while (begin + length < own.size() && others_begin + length < other.size() &&
           alike(own.at(begin + length), other.at(others_begin + length)))
      ++length;
    return length;
  };
  if (own.whole && other.whole) {
    const std::ptrdiff_t length = together(0, 0);
    return Common{.place = length, .others_place = length};
  }
  std::ptrdiff_t longest = 3;
  std::optional<Common> common;
  for (std::ptrdiff_t shift = -own.size(); shift <= other.size(); ++shift) {
    const std::ptrdiff_t begin = std::max<std::ptrdiff_t>(0, -shift);
    const std::ptrdiff_t length = together(begin, begin + shift);
    if (length <= longest) continue;
    longest = length;
    common = Common{.place = begin + length, .others_place = begin + length + shift};
  }
  return common;
}

// The calls from `place` on are those of the other way from `others_place` on, as far as both are told.
bool goes_on_alike(const Way& own, std::ptrdiff_t place, const Way& other, std::ptrdiff_t others_place) {
  return are_alike(own, place, other, others_place, std::min(own.size() - place, other.size() - others_place));
}

// How many calls of the stream the rank had issued ahead of `call`.
std::int64_t issued_ahead_of(const AttemptCalls& calls, int rank, std::string_view stream, const IssuedCall& call) {
  std::int64_t issued = -1;
  for (const IssuedCall& own : calls.dumps.at(rank).calls) {
    if (&own == &call) break;
    if (own.stream == stream) issued = own.sequence + 1;
  }
  if (issued >= 0) return issued;
  const auto told = calls.told.find(rank);
  if (told == calls.told.end()) return 0;
  const auto completed = told->second.find(stream);
  return completed == told->second.end() ? 0 : completed->second;
}

struct Parting {
  int other = 0;
  Way way;  // of the other
  Common common;
  const IssuedCall& due() const { return way.at(common.others_place); }
};

std::optional<Divergence> divergence_at(const AttemptCalls& calls, int rank, const Way& own, const Parting& parting) {
  const auto [place, others_place] = parting.common;
  const IssuedCall& came = own.at(place);
  NamedCall due = named(parting.due());
  due.stream = stream_like(calls, rank, parting.other, due.stream);
  if (due.stream.empty()) return std::nullopt;
  due.sequence = issued_ahead_of(calls, rank, due.stream, came);
  const Way& way = parting.way;
  const bool repeated = place > 0 && alike(own.at(place - 1), came) && own.at(place - 1).elements == came.elements &&
                        goes_on_alike(own, place + 1, way, others_place);
  // What comes behind the call that was due is alike, but is as large as the call ahead of it?
  const bool of_another_size = repeated && others_place + 1 < way.size() &&
                               way.at(others_place - 1).elements != way.at(others_place + 1).elements;
  const bool left_out = !of_another_size && goes_on_alike(own, place, way, others_place + 1);
  using Again = Divergence::Again;
  return Divergence{.due = due,
                    .came = named(came),
                    .again = !repeated  ? Again::no
                             : left_out ? Again::perhaps
                                        : Again::yes};
}

// The largest number of them that part at the earliest place for the same call, first; the others have come along
// further.
std::vector<const Parting*> most_at_the_earliest(const std::vector<Parting>& partings) {
  const auto earliest =
      std::ranges::min_element(partings, {}, [](const Parting& parting) { return parting.common.place; });
  std::vector<const Parting*> most;
  for (const Parting& one : partings) {
    std::vector<const Parting*> same;
    for (const Parting& other : partings) {
      const bool there = other.common.place == earliest->common.place && one.common.place == earliest->common.place;
      if (there && alike(one.due(), other.due())) same.push_back(&other);
    }
    if (same.size() > most.size()) most = same;
  }
  return most;
}

}  // namespace

std::optional<NamedCall> due_by_others(const AttemptCalls& calls, int rank, const GivenUp& where) {
  const Way own = way_of(calls.dumps.at(rank), where.step);
  std::optional<NamedCall> due;
  for (const auto& [other, dump] : calls.dumps) {
    if (other == rank || calls.stage.at(other) != calls.stage.at(rank)) continue;
    const Way way = way_of(dump, where.step);
    const IssuedCall* const next = next_of_other(own, way);
    if (next == nullptr || next->phase != where.phase) continue;
    if (due && due->call != next->call) return std::nullopt;
    const std::string_view stream = stream_like(calls, rank, other, next->stream);
    if (stream.empty()) continue;
    due = named(*next);
    due->stream = stream;
    due->sequence = calls.next_of(rank, stream);
  }
  return due;
}

std::optional<Divergence> divergence_by_others(const AttemptCalls& calls, int rank) {
  const Dump& dump = calls.dumps.at(rank);
  const auto last = std::ranges::find_if(dump.calls.rbegin(), dump.calls.rend(), [](const IssuedCall& call) {
    return !call.aside && is_of_training(call.phase);
  });
  if (last == dump.calls.rend()) return std::nullopt;
  const Way own = way_of(dump, last->step);
  std::vector<Parting> partings;
  std::size_t along = 1;  // itself
  for (const auto& [other, others_dump] : calls.dumps) {
    if (other == rank || calls.stage.at(other) != calls.stage.at(rank)) continue;
    Way way = way_of(others_dump, last->step);
    const std::optional<Common> common = common_way(own, way);
    if (!common) continue;
    const bool parts = common->place < own.size() && common->others_place < way.size();
    if (parts) {
      partings.push_back({.other = other, .way = std::move(way), .common = *common});
    } else {
      ++along;
    }
  }
  if (partings.empty()) return std::nullopt;
  const std::vector<const Parting*> most = most_at_the_earliest(partings);
  along += partings.size() - most.size();
  if (most.size() <= along) return std::nullopt;
  // Whoever has come furthest tells most.
  const auto furthest = std::ranges::max_element(
      most, {}, [](const Parting* parting) { return parting->way.size() - parting->common.others_place; });
  return divergence_at(calls, rank, own, **furthest);
}

}  // namespace firedrill

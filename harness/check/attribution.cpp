#include "harness/check/attribution.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "engine/seam/collective_op.h"
#include "harness/check/calls.h"

namespace firedrill {
namespace {

using CallKey = std::pair<std::string_view, std::int64_t>;

// A call in which ranks wait for members that did not issue it.
struct Waiting {
  const IssuedCall* call = nullptr;
  std::vector<int> waiting;
  std::vector<int> missing;
};

class Finder {
 public:
  Finder(const Case& run, const AttemptSpan& attempt) : run_(run), attempt_(attempt), calls_(calls_of(run, attempt)) {
    for (const std::uint32_t position : run.history().of(EventKind::rank_ended)) {
      const Event& event = run.event(position);
      // One that ended by itself in mid-run has told no more than a killed one.
      const bool gone = event.a == 2 || run.history().text(event.detail) == to_string(Code::dead);
      if (event.attempt == attempt.number && gone) died_[event.rank] = &event;
    }
  }

  std::optional<Blame> find() {
    if (calls_.dumps.empty()) return std::nullopt;
    std::optional<Blame> blame = mismatch();
    const std::vector<Waiting> waits = waits_of();
    if (!blame) blame = dead(waits);
    if (!blame) blame = missing(waits);
    if (!blame) blame = link();
    if (!blame) return std::nullopt;
    blame->attempt = attempt_.number;
    std::ranges::sort(blame->ranks);
    for (const auto& [rank, dump] : calls_.dumps) {
      const IssuedCall* last = dump.last_completed();
      blame->last_completed[rank] = last ? describe(*last) : "none";
    }
    return blame;
  }

 private:
  static Blame at(BlameKind kind, const IssuedCall& call) {
    return {.kind = kind,
            .ranks = {},
            .stream = std::string(call.stream),
            .sequence = call.sequence,
            .step = call.step,
            .phase = call.phase,
            .call = std::string(call.call),
            .what = {},
            .died = {},
            .last_completed = {}};
  }

  std::optional<Blame> mismatch() const {
    const auto found = first_disagreement(calls_);
    if (!found) return std::nullopt;
    std::map<Digest, std::vector<int>> sides;
    const IssuedCall* earliest = found->of_first;
    for (const auto& [rank, dump] : calls_.dumps) {
      const IssuedCall* call = dump.find(found->of_first->stream, found->of_first->sequence);
      if (!call) continue;
      sides[call->print].push_back(rank);
      if (comes_before(*call, *earliest)) earliest = call;
    }
    std::size_t most = 0;
    for (const auto& [print, ranks] : sides) most = std::max(most, ranks.size());
    const auto majorities =
        std::ranges::count_if(sides, [most](const auto& side) { return side.second.size() == most; });
    Blame blame = at(BlameKind::mismatch, *earliest);
    const IssuedCall* odd = nullptr;
    const IssuedCall* usual = nullptr;
    for (const auto& [print, ranks] : sides) {
      const bool with_the_most = majorities == 1 && ranks.size() == most;
      const IssuedCall* of_side =
          calls_.dumps.at(ranks.front()).find(found->of_first->stream, found->of_first->sequence);
      (with_the_most || (majorities > 1 && !usual) ? usual : odd) = of_side;
      if (!with_the_most) blame.ranks.insert(blame.ranks.end(), ranks.begin(), ranks.end());
    }
    if (odd && usual) blame.what = differences(*odd, *usual);
    return blame;
  }

  std::vector<Waiting> waits_of() const {
    std::map<CallKey, Waiting> by_call;
    for (const auto& [rank, dump] : calls_.dumps) {
      const IssuedCall* call = dump.current();
      if (!call) continue;
      Waiting& waiting = by_call[{call->stream, call->sequence}];
      if (!waiting.call) waiting.call = call;
      waiting.waiting.push_back(rank);
    }
    std::vector<Waiting> waits;
    for (auto& [key, waiting] : by_call) {
      for (const int member : ranks_of_stream(key.first)) {
        const auto dump = calls_.dumps.find(member);
        const bool issued = dump != calls_.dumps.end() && dump->second.issued(key.first, key.second);
        if (!issued) waiting.missing.push_back(member);
      }
      if (!waiting.missing.empty()) waits.push_back(std::move(waiting));
    }
    std::ranges::stable_sort(waits, [](const Waiting& a, const Waiting& b) { return comes_before(*a.call, *b.call); });
    return waits;
  }

  std::optional<Blame> dead(const std::vector<Waiting>& waits) const {
    if (died_.empty()) return std::nullopt;
    // Of a call that nobody waits in, the death came too early to be told.
    const IssuedCall* call = nullptr;
    for (const Waiting& waiting : waits) {
      const bool of_dead = std::ranges::any_of(waiting.missing, [&](int rank) { return died_.contains(rank); });
      if (of_dead && !call) call = waiting.call;
    }
    for (const auto& [rank, dump] : calls_.dumps) {
      if (!call) call = dump.current();
    }
    Blame blame = call ? at(BlameKind::dead, *call) : Blame{.kind = BlameKind::dead};
    blame.died = died_;
    const Event* first = nullptr;
    for (const auto& [rank, event] : died_) {
      blame.ranks.push_back(rank);
      if (!first || std::pair(event->step, event->phase) < std::pair(first->step, first->phase)) first = event;
    }
    blame.phase = first->phase;
    blame.step = first->step;
    return blame;
  }

  static bool waits_for_a_missing_one(const std::vector<Waiting>& waits, int rank) {
    return std::ranges::any_of(waits, [rank](const Waiting& waiting) {
      return std::ranges::find(waiting.waiting, rank) != waiting.waiting.end();
    });
  }

  std::optional<Blame> missing(const std::vector<Waiting>& waits) const {
    if (waits.empty()) return std::nullopt;
    // One that waits for nobody itself is where the waiting begins.
    for (const Waiting& waiting : waits) {
      for (const int rank : waiting.missing) {
        const auto dump = calls_.dumps.find(rank);
        if (dump != calls_.dumps.end() && dump->second.current()) continue;
        Blame blame = at(BlameKind::missing, *waiting.call);
        blame.ranks = {rank};
        return blame;
      }
    }
    // Nor is anybody missing where those wait whom the others wait for: then a message was lost.
    if (std::ranges::none_of(waits, [&](const Waiting& waiting) {
          return std::ranges::any_of(waiting.missing, [&](int rank) { return waits_for_a_missing_one(waits, rank); });
        })) {
      return std::nullopt;
    }
    const Waiting& most = *std::ranges::max_element(
        waits, [](const Waiting& a, const Waiting& b) { return a.waiting.size() < b.waiting.size(); });
    const IssuedCall* earliest = most.call;
    for (const int rank : most.missing) {
      const IssuedCall* own = calls_.dumps.at(rank).current();
      if (comes_before(*own, *earliest) || (!comes_before(*earliest, *own) && most.call == earliest)) earliest = own;
    }
    Blame blame = at(BlameKind::missing, *earliest);
    blame.ranks = most.missing;
    return blame;
  }

  std::optional<Blame> link() const {
    int rank = -1;
    const IssuedCall* call = nullptr;
    for (const auto& [candidate, dump] : calls_.dumps) {
      const IssuedCall* current = dump.current();
      if (!current || current->waited_for < 0 || (call && !comes_before(*current, *call))) continue;
      rank = candidate;
      call = current;
    }
    if (!call) return std::nullopt;
    std::set<int> met;
    for (;;) {
      met.insert(rank);
      const int next = calls_.dumps.at(rank).current()->waited_for;
      const auto dump = calls_.dumps.find(next);
      const IssuedCall* others = dump == calls_.dumps.end() ? nullptr : dump->second.current();
      // One that waits in a later call is done with this one.
      const IssuedCall* own = calls_.dumps.at(rank).current();
      const bool in_it = others && others->waited_for >= 0 && !comes_before(*own, *others);
      if (met.contains(next) || !in_it) {
        Blame blame = at(BlameKind::link, *calls_.dumps.at(rank).current());
        blame.ranks = {rank, next};
        return blame;
      }
      rank = next;
    }
  }

  const Case& run_;
  const AttemptSpan& attempt_;
  AttemptCalls calls_;
  std::map<int, const Event*> died_;
};

}  // namespace

std::string_view to_string(BlameKind kind) {
  switch (kind) {
    case BlameKind::mismatch: return "mismatch";
    case BlameKind::dead: return "dead";
    case BlameKind::missing: return "missing";
    case BlameKind::link: return "link";
  }
  return "?";
}

std::string_view work_of(Phase phase) {
  switch (phase) {
    case Phase::save:
    case Phase::commit:
    case Phase::validate:
    case Phase::retire: return "checkpoint";
    case Phase::find:
    case Phase::restore:
    case Phase::rendezvous: return "recovery";
    default: return to_string(phase);
  }
}

std::optional<Blame> blame_of(const Case& run, const AttemptSpan& attempt) { return Finder(run, attempt).find(); }

std::vector<Blame> attribution_of(const Case& run) {
  std::vector<Blame> all;
  for (const AttemptSpan& attempt : run.attempts()) {
    if (auto blame = blame_of(run, attempt)) all.push_back(*std::move(blame));
  }
  return all;
}

std::string describe(const Blame& blame) {
  const std::string where = blame.sequence < 0
                                ? std::string("a call")
                                : fmt::format("{} (call {} of {})", blame.call, blame.sequence, blame.stream);
  std::string who = fmt::format("rank{} {}", blame.ranks.size() == 1 ? "" : "s", fmt::join(blame.ranks, ", "));
  const bool one = blame.ranks.size() == 1;
  const std::string place = fmt::format("step {}, {}", blame.step, work_of(blame.phase));
  switch (blame.kind) {
    case BlameKind::mismatch:
      return fmt::format("attempt {}: {} disagree{} about {} at {}: {}", blame.attempt, who, one ? "s" : "", where,
                         place, blame.what);
    case BlameKind::dead:
      return fmt::format("attempt {}: {} died at {}; the others wait in {}", blame.attempt, who, place, where);
    case BlameKind::missing:
      return fmt::format("attempt {}: {} {} missing from {} at {}", blame.attempt, who, one ? "is" : "are", where,
                         place);
    case BlameKind::link:
      return fmt::format("attempt {}: {} lost a message between them in {} at {}", blame.attempt, who, where, place);
  }
  return {};
}

}  // namespace firedrill

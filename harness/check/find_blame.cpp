#include <fmt/format.h>

#include <algorithm>

#include "harness/check/attribution.h"
#include "harness/check/blame_of_waits.h"
#include "harness/check/divergences.h"
#include "harness/check/first_step.h"
#include "harness/check/waits.h"

namespace firedrill {
namespace {

// Outcomes of rank_ended.
constexpr std::int64_t failed = 1;
constexpr std::int64_t failed_a_check = 3;

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
    std::optional<Blame> blame = diverged();
    if (!blame) blame = mismatch();
    const std::vector<Waiting> waits = waits_of(calls_);
    if (!blame) blame = damaged();
    if (!blame) blame = replica();
    if (!blame) blame = gave_up(waits);
    if (!blame) blame = slow();
    if (!blame) blame = by_itself(waits);
    if (!blame) blame = one_too_many(waits);
    if (!blame) blame = dead(waits);
    if (!blame) blame = blame_of_waits(run_, calls_, waits);
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
  // A rank did not keep to the order of its calls.
  std::optional<Blame> diverged() const {
    const auto found = first_divergence(calls_);
    if (!found) return std::nullopt;
    Blame blame = blame_at(BlameKind::mismatch, found->call);
    blame.ranks = {found->rank};
    blame.what = found->again          ? "it was issued once more"
                 : found->came.empty() ? "it was left out"
                                       : fmt::format("{} came in its place", found->came);
    return blame;
  }

  std::optional<Blame> mismatch() const {
    const auto found = first_disagreement(calls_);
    if (!found) return std::nullopt;
    std::map<std::pair<Digest, Phase>, std::vector<int>> sides;
    const IssuedCall* earliest = found->of_first;
    for (const auto& [rank, dump] : calls_.dumps) {
      const IssuedCall* call = dump.find(found->of_first->stream, found->of_first->sequence);
      if (!call) continue;
      sides[{call->print, call->phase}].push_back(rank);
      if (issued_before(calls_, *call, *earliest)) earliest = call;
    }
    std::size_t most = 0;
    for (const auto& [print, ranks] : sides) most = std::max(most, ranks.size());
    const auto majorities =
        std::ranges::count_if(sides, [most](const auto& side) { return side.second.size() == most; });
    Blame blame = blame_at(BlameKind::mismatch, *earliest);
    const IssuedCall* odd = nullptr;
    const IssuedCall* usual = nullptr;
    for (const auto& [print, ranks] : sides) {
      const bool with_the_most = majorities == 1 && ranks.size() == most;
      const IssuedCall* of_side =
          calls_.dumps.at(ranks.front()).find(found->of_first->stream, found->of_first->sequence);
      (with_the_most || (majorities > 1 && !usual) ? usual : odd) = of_side;
      if (!with_the_most) blame.ranks.insert(blame.ranks.end(), ranks.begin(), ranks.end());
    }
    if (usual) blame.call = usual->call;  // what the others are in
    if (odd && usual) blame.what = differences(*odd, *usual);
    return blame;
  }

  std::vector<const Event*> events(EventKind kind) const {
    std::vector<const Event*> found;
    for (const std::uint32_t position : run_.history().of(kind)) {
      if (run_.event(position).attempt == attempt_.number) found.push_back(&run_.event(position));
    }
    return found;
  }
  std::string_view code_of(const Event& end) const { return run_.history().text(end.detail); }

  static Blame of_rank(BlameKind kind, std::int64_t rank, const Event& at, std::string_view what) {
    Blame blame{.kind = kind, .step = at.step, .phase = at.phase, .what = std::string(what)};
    if (rank >= 0) blame.ranks = {static_cast<int>(rank)};
    return blame;
  }

  std::optional<Blame> replica() const {
    for (const Event* event : events(EventKind::replicas_compared)) {
      if (event->b != -1) return of_rank(BlameKind::replica, event->b, *event, run_.history().text(event->name));
    }
    return std::nullopt;
  }

  std::optional<Blame> slow() const {
    for (const Event* event : events(EventKind::suspected)) {
      if (event->a < 0 || event->b != static_cast<std::int64_t>(Suspicion::slow)) continue;
      return of_rank(BlameKind::slow, event->a, *event, run_.history().text(event->detail));
    }
    return std::nullopt;
  }

  // What came in a call was not what was sent.
  std::optional<Blame> damaged() const {
    const IssuedCall* earliest = nullptr;
    int receiver = -1;
    for (const auto& [rank, dump] : calls_.dumps) {
      for (const IssuedCall& call : dump.calls) {
        if (!call.damaged || (earliest && !comes_before(call, *earliest))) continue;
        earliest = &call;
        receiver = rank;
      }
    }
    if (!earliest) return std::nullopt;
    Blame blame = blame_at(BlameKind::link, *earliest);
    blame.ranks = {receiver, earliest->waited_for};
    return blame;
  }

  // A task that went away between two calls is missing from its next one.
  std::optional<Blame> gave_up(const std::vector<Waiting>& waits) const {
    for (const auto& [rank, dump] : calls_.dumps) {
      if (!dump.gave_up) continue;
      const GivenUp& where = *dump.gave_up;
      std::optional<NamedCall> due = where.due;
      if (!due && !where.aside) due = due_by_others(calls_, rank, where);
      if (due) {
        Blame blame = blame_at(BlameKind::missing, *due);
        blame.ranks = {rank};
        return blame;
      }
      const Waiting* const missed = missed_at(waits, rank, where.step, where.phase, where.aside);
      if (missed != nullptr) return blame_for_missing(calls_, *missed->call, rank);
      return Blame{.kind = BlameKind::missing, .ranks = {rank}, .step = where.step, .phase = where.phase};
    }
    return std::nullopt;
  }

  // Of its main task; what it has put off does not count.
  bool is_in_a_call(int rank) const {
    const auto dump = calls_.dumps.find(rank);
    if (dump == calls_.dumps.end()) return false;
    const auto own =
        std::ranges::find(dump->second.calls.rbegin(), dump->second.calls.rend(), false, &IssuedCall::aside);
    return own != dump->second.calls.rend() && !own->completed;
  }

  // The first that ended badly, if no peer is the reason for it. What does not fit together inside of a call is a
  // matter of all its members, and outside of all of the rank that has it.
  std::optional<Blame> by_itself(const std::vector<Waiting>& waits) const {
    for (const Event* end : events(EventKind::rank_ended)) {
      if (died_.contains(end->rank)) return std::nullopt;
      if (end->a != failed && end->a != failed_a_check) continue;
      const std::string_view code = code_of(*end);
      if (code == to_string(Code::aborted) || code == to_string(Code::timeout)) continue;
      if (code == to_string(Code::mismatch)) {
        if (is_in_a_call(end->rank)) continue;
        const Waiting* const missed = missed_at(waits, end->rank, end->step, end->phase, false);
        if (missed != nullptr) return blame_for_missing(calls_, *missed->call, end->rank);
      }
      return of_rank(BlameKind::failed, end->rank, *end, run_.history().text(end->name));
    }
    return std::nullopt;
  }

  // Whoever has finished has issued all there was: a call in which some wait
  // for those alone is one too many, or those have left it out. The fewer are
  // wrong; of equally many, all.
  std::optional<Blame> one_too_many(const std::vector<Waiting>& waits) const {
    for (const Waiting& waiting : waits) {
      if (!std::ranges::all_of(waiting.missing, [&](int rank) { return calls_.finished.contains(rank); })) continue;
      const auto waiting_ones = waiting.waiting.size();
      const auto missing_ones = waiting.missing.size();
      Blame blame = blame_at(waiting_ones > missing_ones ? BlameKind::missing : BlameKind::mismatch, *waiting.call);
      blame.ranks = waiting_ones > missing_ones ? waiting.missing : waiting.waiting;
      if (waiting_ones == missing_ones)
        blame.ranks.insert(blame.ranks.end(), waiting.missing.begin(), waiting.missing.end());
      if (blame.kind == BlameKind::mismatch) blame.what = "the others had finished without it";
      return blame;
    }
    return std::nullopt;
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
    Blame blame = call ? blame_at(BlameKind::dead, *call) : Blame{.kind = BlameKind::dead};
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

  const Case& run_;
  const AttemptSpan& attempt_;
  AttemptCalls calls_;
  std::map<int, const Event*> died_;
};

}  // namespace

std::optional<Blame> blame_of(const Case& run, const AttemptSpan& attempt) { return Finder(run, attempt).find(); }

}  // namespace firedrill

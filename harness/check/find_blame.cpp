#include <algorithm>
#include <set>

#include "engine/seam/collective_op.h"
#include "harness/check/attribution.h"
#include "harness/check/waits.h"

namespace firedrill {
namespace {

// Outcomes of rank_ended.
constexpr std::int64_t failed = 1;
constexpr std::int64_t failed_a_check = 3;

constexpr bool both_tasks[] = {false, true};  // by `aside`

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
    const std::vector<Waiting> waits = waits_of(calls_);
    if (!blame) blame = damaged();
    if (!blame) blame = replica();
    if (!blame) blame = gave_up(waits);
    if (!blame) blame = slow();
    if (!blame) blame = by_itself();
    if (!blame) blame = one_too_many(waits);
    if (!blame) blame = dead(waits);
    if (!blame) blame = lost_behind();
    if (!blame) blame = locked();
    if (!blame) blame = passed_by();
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
      if (issued_before(calls_, *call, *earliest)) earliest = call;
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

  // From that call, or from an earlier one of its stream that the others could
  // complete or put off without it.
  Blame missing_from(const IssuedCall& waited_in, int rank) const {
    const IssuedCall* call = &waited_in;
    const std::int64_t next = calls_.next_of(rank, call->stream);
    for (const auto& [other, dump] : calls_.dumps) {
      const IssuedCall* const issued = dump.find(call->stream, next);
      const bool of_one_place = issued && issued->step == call->step && issued->phase == call->phase;
      if (of_one_place && next < call->sequence) call = issued;
    }
    Blame blame = at(BlameKind::missing, *call);
    blame.ranks = {rank};
    return blame;
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
    Blame blame = at(BlameKind::link, *earliest);
    blame.ranks = {receiver, earliest->waited_for};
    return blame;
  }

  // A task that went away between two calls is missing from its next one.
  std::optional<Blame> gave_up(const std::vector<Waiting>& waits) const {
    for (const auto& [rank, dump] : calls_.dumps) {
      if (!dump.gave_up) continue;
      const GivenUp& where = *dump.gave_up;
      Blame blame{.kind = BlameKind::missing, .ranks = {rank}, .step = where.step, .phase = where.phase};
      for (const Waiting& waiting : waits) {
        const IssuedCall& call = *waiting.call;
        if (call.aside != where.aside || call.step != where.step || call.phase != where.phase) continue;
        if (std::ranges::find(waiting.missing, rank) == waiting.missing.end()) continue;
        return missing_from(call, rank);
      }
      return blame;
    }
    return std::nullopt;
  }

  // The first that ended badly, if no peer is the reason for it.
  std::optional<Blame> by_itself() const {
    for (const Event* end : events(EventKind::rank_ended)) {
      if (died_.contains(end->rank)) return std::nullopt;
      if (end->a != failed && end->a != failed_a_check) continue;
      const std::string_view code = code_of(*end);
      if (code == to_string(Code::aborted) || code == to_string(Code::timeout) || code == to_string(Code::mismatch))
        continue;
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
      Blame blame = at(waiting_ones > missing_ones ? BlameKind::missing : BlameKind::mismatch, *waiting.call);
      blame.ranks = waiting_ones > missing_ones ? waiting.missing : waiting.waiting;
      if (waiting_ones == missing_ones)
        blame.ranks.insert(blame.ranks.end(), waiting.missing.begin(), waiting.missing.end());
      if (blame.kind == BlameKind::mismatch) blame.what = "the others had finished without it";
      return blame;
    }
    return std::nullopt;
  }

  // One waits for what the other has sent: the message was lost between them.
  std::optional<Blame> lost_behind() const {
    std::optional<Blame> found;
    const IssuedCall* earliest = nullptr;
    for (const auto& [rank, dump] : calls_.dumps) {
      for (const bool aside : both_tasks) {
        const IssuedCall* current = wait_of(calls_, rank, aside);
        if (!current || current->call.starts_with("send")) continue;
        if (!is_past(calls_, current->waited_for, *current) || (earliest && !comes_before(*current, *earliest)))
          continue;
        earliest = current;
        found = at(BlameKind::link, *current);
        found->ranks = {rank, current->waited_for};
      }
    }
    return found;
  }

  // One waits for a rank that is further in its work, and did not issue that
  // call on its way.
  std::optional<Blame> passed_by() const {
    for (const auto& [rank, dump] : calls_.dumps) {
      for (const bool aside : both_tasks) {
        const IssuedCall* own = wait_of(calls_, rank, aside);
        const IssuedCall* others = own ? wait_of(calls_, own->waited_for, aside) : nullptr;
        if (!others || calls_.issued(own->waited_for, own->stream, own->sequence)) continue;
        // Micro-batches take turns: which of these comes first their phases do
        // not tell.
        const bool both_compute =
            own->step == others->step && is_of_a_micro_batch(own->phase) && is_of_a_micro_batch(others->phase);
        if (both_compute || !issued_before(calls_, *own, *others)) continue;
        return of_the_fewer(*own);
      }
    }
    return std::nullopt;
  }
  // Some members issued the call and others passed it by: the fewer are wrong;
  // of equally many, all.
  Blame of_the_fewer(const IssuedCall& call) const {
    std::vector<int> issued;
    std::vector<int> passed;
    for (const int member : ranks_of_stream(call.stream)) {
      const IssuedCall* where = wait_of(calls_, member, call.aside);
      if (calls_.issued(member, call.stream, call.sequence)) {
        issued.push_back(member);
      } else if (where && issued_before(calls_, call, *where)) {
        passed.push_back(member);
      }
    }
    const bool one_too_many = issued.size() < passed.size();
    Blame blame = at(one_too_many ? BlameKind::mismatch : BlameKind::missing, call);
    if (one_too_many) blame.what = "the others had passed it by";
    blame.ranks = one_too_many ? issued : passed;
    if (issued.size() == passed.size()) blame.ranks.insert(blame.ranks.end(), issued.begin(), issued.end());
    return blame;
  }
  static bool is_of_a_micro_batch(Phase phase) { return phase == Phase::forward || phase == Phase::backward; }

  // Two that wait for each other in one call, which both issued: whoever else
  // waits, waits for them.
  std::optional<Blame> locked() const {
    for (const auto& [rank, dump] : calls_.dumps) {
      for (const bool aside : both_tasks) {
        const IssuedCall* own = wait_of(calls_, rank, aside);
        const IssuedCall* others = own ? wait_of(calls_, own->waited_for, aside) : nullptr;
        const bool each_other = others && others->waited_for == rank;
        if (!each_other || own->stream != others->stream || own->sequence != others->sequence) continue;
        Blame blame = at(BlameKind::link, *own);
        blame.ranks = {rank, own->waited_for};
        return blame;
      }
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

  // Where the main task of a rank ended by itself, its other one went with it:
  // what others miss of that is a consequence. Nothing if they miss nothing of
  // the main task there.
  const Waiting* waiting_at_end_of(const std::vector<Waiting>& waits, int rank) const {
    const std::vector<const Event*> ends = events(EventKind::rank_ended);
    const auto end = std::ranges::find_if(ends, [rank](const Event* event) { return event->rank == rank; });
    if (end == ends.end()) return nullptr;
    const auto found = std::ranges::find_if(waits, [&](const Waiting& waiting) {
      const IssuedCall& call = *waiting.call;
      return !call.aside && call.step == (*end)->step && call.phase == (*end)->phase &&
             std::ranges::find(waiting.missing, rank) != waiting.missing.end();
    });
    return found == waits.end() ? nullptr : &*found;
  }

  std::optional<Blame> missing(const std::vector<Waiting>& waits) const {
    if (waits.empty()) return std::nullopt;
    // One that waits for nobody itself is where the waiting begins, or one that
    // left the call out.
    for (const Waiting& waiting : waits) {
      for (const int rank : waiting.missing) {
        const auto dump = calls_.dumps.find(rank);
        const bool waits_itself = dump != calls_.dumps.end() && dump->second.current();
        if (waits_itself && !left_out(calls_, rank, waiting)) continue;
        const Waiting* const ended_at = waits_itself ? nullptr : waiting_at_end_of(waits, rank);
        return missing_from(ended_at ? *ended_at->call : *waiting.call, rank);
      }
    }
    // Nor is anybody missing where those wait whom the others wait for: then a
    // message was lost.
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
      if (issued_before(calls_, *own, *earliest)) earliest = own;
    }
    Blame blame = at(BlameKind::missing, *earliest);
    blame.ranks = most.missing;
    return blame;
  }

  // Whoever waits earliest, and on from there to the one whom nobody else keeps
  // waiting.
  std::optional<Blame> link() const {
    int rank = -1;
    const IssuedCall* call = nullptr;
    for (const auto& [candidate, dump] : calls_.dumps) {
      for (const bool aside : both_tasks) {
        const IssuedCall* current = wait_of(calls_, candidate, aside);
        if (!current || (call && !comes_before(*current, *call))) continue;
        rank = candidate;
        call = current;
      }
    }
    if (!call) return std::nullopt;
    std::set<int> met;
    for (;;) {
      met.insert(rank);
      const int next = call->waited_for;
      const IssuedCall* others = wait_of(calls_, next, call->aside);
      // One that waits in a later call is done with this one.
      if (met.contains(next) || !others || comes_before(*call, *others)) {
        Blame blame = at(BlameKind::link, *call);
        blame.ranks = {rank, next};
        return blame;
      }
      rank = next;
      call = others;
    }
  }

  const Case& run_;
  const AttemptSpan& attempt_;
  AttemptCalls calls_;
  std::map<int, const Event*> died_;
};

}  // namespace

std::optional<Blame> blame_of(const Case& run, const AttemptSpan& attempt) { return Finder(run, attempt).find(); }

}  // namespace firedrill

#include "harness/check/blame_of_waits.h"

#include <algorithm>
#include <set>

#include "engine/seam/collective_op.h"

namespace firedrill {

Blame blame_at(BlameKind kind, const IssuedCall& call) { return blame_at(kind, named(call)); }

Blame blame_at(BlameKind kind, const NamedCall& call) {
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

Blame blame_for_missing(const AttemptCalls& calls, const IssuedCall& waited_in, int rank) {
  const IssuedCall* call = &waited_in;
  const std::int64_t next = calls.next_of(rank, call->stream);
  for (const auto& [other, dump] : calls.dumps) {
    const IssuedCall* const issued = dump.find(call->stream, next);
    const bool of_one_place = issued && issued->step == call->step && issued->phase == call->phase;
    if (of_one_place && next < call->sequence) call = issued;
  }
  Blame blame = blame_at(BlameKind::missing, *call);
  blame.ranks = {rank};
  return blame;
}

namespace {

constexpr bool both_tasks[] = {false, true};  // by `aside`

class WaitFinder {
 public:
  WaitFinder(const Case& run, const AttemptCalls& calls) : run_(run), calls_(calls) {}

  std::optional<Blame> find(const std::vector<Waiting>& waits) const {
    std::optional<Blame> blame = lost_behind();
    if (!blame) blame = locked();
    if (!blame) blame = passed_by();
    if (!blame) blame = missing(waits);
    if (!blame) blame = link();
    return blame;
  }

 private:
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
        found = blame_at(BlameKind::link, *current);
        found->ranks = {rank, current->waited_for};
      }
    }
    return found;
  }

  // Micro-batches take turns, and what is exchanged in buckets goes between them: which of two such calls of a step
  // comes first their phases do not tell.
  bool takes_turns(Phase phase) const {
    return is_of_a_micro_batch(phase) || (phase == Phase::exchange && calls_.attempt->layout->bucket_bytes > 0);
  }
  // One waits for a rank that is further in its work, and did not issue that call on its way. Of several the earliest.
  std::optional<Blame> passed_by() const {
    const IssuedCall* earliest = nullptr;
    for (const auto& [rank, dump] : calls_.dumps) {
      for (const bool aside : both_tasks) {
        const IssuedCall* own = wait_of(calls_, rank, aside);
        const IssuedCall* others = own ? wait_of(calls_, own->waited_for, aside) : nullptr;
        if (!others || calls_.issued(own->waited_for, own->stream, own->sequence)) continue;
        const bool both_take_turns = own->step == others->step && takes_turns(own->phase) && takes_turns(others->phase);
        if (both_take_turns || !issued_before(calls_, *own, *others)) continue;
        if (!earliest || comes_before(*own, *earliest)) earliest = own;
      }
    }
    return earliest ? std::optional(of_the_fewer(*earliest)) : std::nullopt;
  }
  // It has made such a step before, and told no divergence from that one.
  bool knows_to_be_due(int rank, const IssuedCall& call) const {
    const bool knows =
        calls_.dumps.contains(rank) && calls_.past_a_step.contains(rank) && is_of_training(call.phase) && !call.aside;
    return knows && std::ranges::none_of(calls_.dumps.at(rank).divergences, [&](const Divergence& divergence) {
             return (divergence.due && divergence.due->step == call.step) ||
                    (divergence.came && divergence.came->step == call.step);
           });
  }
  // Some members issued the call and others passed it by or left it out: the fewer are wrong; of equally many those who
  // did not issue what was due by the steps before, else all.
  Blame of_the_fewer(const IssuedCall& call) const {
    std::vector<int> issued;
    std::vector<int> passed;
    for (const int member : ranks_of_stream(call.stream)) {
      const IssuedCall* where = wait_of(calls_, member, call.aside);
      if (calls_.issued(member, call.stream, call.sequence)) {
        issued.push_back(member);
      } else if ((where && issued_before(calls_, call, *where)) || left_out(calls_, member, call)) {
        passed.push_back(member);
      }
    }
    if (issued.size() > passed.size() && passed.size() == 1) return blame_for_missing(calls_, call, passed.front());
    const bool one_too_many = issued.size() < passed.size();
    Blame blame = blame_at(one_too_many ? BlameKind::mismatch : BlameKind::missing, call);
    if (one_too_many) blame.what = "the others went on without it";
    blame.ranks = one_too_many ? issued : passed;
    const bool due = std::ranges::any_of(issued, [&](int rank) { return knows_to_be_due(rank, call); });
    if (issued.size() == passed.size() && !due) blame.ranks.insert(blame.ranks.end(), issued.begin(), issued.end());
    return blame;
  }
  // Two that wait for each other in one call, which both issued: whoever else
  // waits, waits for them.
  std::optional<Blame> locked() const {
    for (const auto& [rank, dump] : calls_.dumps) {
      for (const bool aside : both_tasks) {
        const IssuedCall* own = wait_of(calls_, rank, aside);
        const IssuedCall* others = own ? wait_of(calls_, own->waited_for, aside) : nullptr;
        const bool each_other = others && others->waited_for == rank;
        if (!each_other || own->stream != others->stream || own->sequence != others->sequence) continue;
        Blame blame = blame_at(BlameKind::link, *own);
        blame.ranks = {rank, own->waited_for};
        return blame;
      }
    }
    return std::nullopt;
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
    const Event* end = nullptr;
    for (const std::uint32_t position : run_.history().of(EventKind::rank_ended)) {
      const Event& event = run_.event(position);
      if (end == nullptr && calls_.in(event) && event.rank == rank) end = &event;
    }
    return end == nullptr ? nullptr : missed_at(waits, rank, end->step, end->phase, false);
  }

  std::optional<Blame> missing(const std::vector<Waiting>& waits) const {
    if (waits.empty()) return std::nullopt;
    // One that waits for nobody itself is where the waiting begins, or one that
    // left the call out.
    for (const Waiting& waiting : waits) {
      for (const int rank : waiting.missing) {
        const auto dump = calls_.dumps.find(rank);
        const bool waits_itself = dump != calls_.dumps.end() && dump->second.current();
        if (waits_itself && !left_out(calls_, rank, *waiting.call)) continue;
        if (waits_itself) return of_the_fewer(*waiting.call);
        const Waiting* const ended_at = waiting_at_end_of(waits, rank);
        return blame_for_missing(calls_, ended_at ? *ended_at->call : *waiting.call, rank);
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
    Blame blame = blame_at(BlameKind::missing, *earliest);
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
        Blame blame = blame_at(BlameKind::link, *call);
        blame.ranks = {rank, next};
        return blame;
      }
      rank = next;
      call = others;
    }
  }

  const Case& run_;
  const AttemptCalls& calls_;
};

}  // namespace

std::optional<Blame> blame_of_waits(const Case& run, const AttemptCalls& calls, const std::vector<Waiting>& waits) {
  return WaitFinder(run, calls).find(waits);
}

}  // namespace firedrill

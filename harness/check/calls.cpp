#include "harness/check/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "engine/seam/collective_op.h"

namespace firedrill {
namespace {

bool is_member(std::string_view stream, int rank) {
  const std::vector<int> ranks = ranks_of_stream(stream);
  return std::ranges::find(ranks, rank) != ranks.end();
}

std::vector<std::string_view> words_in(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    words.push_back(text.substr(0, space));
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
  }
  return words;
}

// A rank meets its peers and looks for a checkpoint before it computes; outside of all phases are its start and its
// end.
int place_in_work(std::int64_t step, Phase phase) {
  switch (phase) {
    case Phase::none: return step == 0 ? 0 : phase_count + 3;
    case Phase::rendezvous: return 1;
    case Phase::find: return 2;
    case Phase::restore: return 3;
    default: return 3 + static_cast<int>(phase);
  }
}

bool is_of_a_publish(Phase phase) { return phase >= Phase::save && phase <= Phase::retire; }

// A call of a publish that its rank issued before in this step, and then others, is one of the next try.
int lap_of(const IssuedCall& call, const Dump& before) {
  if (!is_of_a_publish(call.phase)) return 0;
  int laps = 0;
  const IssuedCall* last = nullptr;
  for (const IssuedCall& one : before.calls) {
    if (one.stream != call.stream || one.step != call.step || !is_of_a_publish(one.phase)) continue;
    if (one.call == call.call && (last == nullptr || last->call != call.call)) ++laps;
    last = &one;
  }
  return last != nullptr && last->call == call.call ? laps - 1 : laps;
}

// A receiver that got nothing knows neither type nor size of what was sent.
bool got_nothing(const IssuedCall& call) { return !call.completed && call.call.starts_with("recv"); }

// It waits for a peer to issue something; who sends does not, and a call that nobody gave up was only cut short.
bool is_wait(const IssuedCall& call) { return call.waited_for >= 0 && !call.call.starts_with("send"); }

bool is_of_second_task(const IssuedCall& call) { return call.stream.starts_with("publish"); }

bool agree(const IssuedCall& a, const IssuedCall& b) {
  if (!got_nothing(a) && !got_nothing(b)) return a.print == b.print;
  return a.step == b.step && words_in(a.call).back() == words_in(b.call).back();
}

}  // namespace

const IssuedCall* Dump::find(std::string_view stream, std::int64_t sequence) const {
  const auto found = std::ranges::find_if(
      calls, [&](const IssuedCall& call) { return call.stream == stream && call.sequence == sequence; });
  return found == calls.end() ? nullptr : &*found;
}

bool AttemptCalls::issued(int rank, std::string_view stream, std::int64_t sequence) const {
  if (const auto streams = told.find(rank); streams != told.end()) {
    const auto completed = streams->second.find(stream);
    if (completed != streams->second.end() && sequence < completed->second) return true;
  }
  const auto dump = dumps.find(rank);
  return dump != dumps.end() && std::ranges::any_of(dump->second.calls, [&](const IssuedCall& call) {
           return call.stream == stream && call.sequence >= sequence;
         });
}

const IssuedCall* Dump::last_completed() const {
  const IssuedCall* last = nullptr;
  for (const IssuedCall& call : calls) {
    if (call.completed) last = &call;
  }
  return last;
}

const IssuedCall* Dump::current() const {
  // Of several that were on their way, the one that failed.
  auto found = std::ranges::find_if(calls, [](const IssuedCall& call) { return call.waited_for >= 0; });
  if (found == calls.end()) {
    found = std::ranges::find_if(calls, [](const IssuedCall& call) { return !call.completed; });
  }
  return found == calls.end() ? nullptr : &*found;
}

AttemptCalls calls_of(const Case& run, const AttemptSpan& attempt) {
  AttemptCalls calls{.attempt = &attempt, .dumps = {}};
  for (const std::uint32_t position : run.history().of(EventKind::call_record)) {
    const Event& event = run.event(position);
    if (event.attempt != attempt.number) continue;
    Dump& dump = calls.dumps[event.rank];
    dump.calls.push_back({.stream = run.history().text(event.name),
                          .sequence = event.a,
                          .step = event.step,
                          .phase = event.phase,
                          .call = run.history().text(event.detail),
                          .elements = event.b,
                          .completed = event.c == 1,
                          .waited_for = event.c < 0 ? static_cast<int>((-1 - event.c) % 65536) : -1,
                          .compared = event.c < -65536,
                          .print = event.digest});
    dump.calls.back().lap = lap_of(dump.calls.back(), dump);
  }
  for (const std::uint32_t position : run.history().of(EventKind::calls)) {
    const Event& event = run.event(position);
    if (event.attempt == attempt.number) calls.told[event.rank][run.history().text(event.name)] += event.a;
  }
  for (const std::uint32_t position : run.history().of(EventKind::rank_ended)) {
    const Event& event = run.event(position);
    if (event.attempt == attempt.number && event.a == 0) calls.finished.insert(event.rank);
  }
  return calls;
}

bool comes_before(const IssuedCall& a, const IssuedCall& b) {
  return std::tuple(a.step, a.lap, place_in_work(a.step, a.phase)) <
         std::tuple(b.step, b.lap, place_in_work(b.step, b.phase));
}

std::optional<Disagreement> first_disagreement(const AttemptCalls& calls) {
  std::map<std::pair<std::string_view, std::int64_t>, std::pair<int, const IssuedCall*>> seen;
  std::optional<Disagreement> first;
  for (const auto& [rank, dump] : calls.dumps) {
    for (const IssuedCall& call : dump.calls) {
      const auto [known, fresh] = seen.try_emplace({call.stream, call.sequence}, rank, &call);
      if (fresh || agree(*known->second.second, call)) continue;
      const Disagreement found{known->second.first, rank, known->second.second, &call};
      const IssuedCall& earlier = comes_before(*found.of_other, *found.of_first) ? *found.of_other : *found.of_first;
      if (first) {
        const bool later = comes_before(*first->of_other, *first->of_first);
        if (!comes_before(earlier, later ? *first->of_other : *first->of_first)) continue;
      }
      first = found;
    }
  }
  return first;
}

std::optional<CrossWait> cross_wait(const AttemptCalls& calls) {
  for (const auto& [first, dump] : calls.dumps) {
    const IssuedCall* const own = dump.current();
    if (own == nullptr || !is_wait(*own)) continue;
    for (const auto& [other, other_dump] : calls.dumps) {
      const IssuedCall* const others = other_dump.current();
      if (other <= first || others == nullptr || !is_wait(*others)) continue;
      // Two tasks of a rank are each in a call of their own.
      if (is_of_second_task(*own) != is_of_second_task(*others)) continue;
      if (!is_member(own->stream, other) || !is_member(others->stream, first)) continue;
      const bool known =
          calls.issued(other, own->stream, own->sequence) || calls.issued(first, others->stream, others->sequence);
      if (!known) return CrossWait{first, other};
    }
  }
  return std::nullopt;
}

std::string describe(const IssuedCall& call) {
  return fmt::format("{} (call {} of {}, step {}, {})", call.call, call.sequence, call.stream, call.step,
                     to_string(call.phase));
}

std::string differences(const IssuedCall& odd, const IssuedCall& usual) {
  std::string text;
  const auto tell = [&text](std::string_view field, const auto& own, const auto& other) {
    if (own == other) return;
    text += fmt::format("{}{} {} instead of {}", text.empty() ? "" : ", ", field, own, other);
  };
  // What was called, word by word where the two have as many; operation first, purpose last.
  const auto own = words_in(odd.call);
  const auto other = words_in(usual.call);
  if (own.size() == other.size() && !own.empty() && own.front() == other.front()) {
    for (std::size_t i = 0; i < own.size(); ++i) tell(i + 1 == own.size() ? "purpose" : "operand", own[i], other[i]);
  } else {
    tell("call", odd.call, usual.call);
  }
  tell("count", odd.elements, usual.elements);
  tell("step", odd.step, usual.step);
  return text;
}

std::vector<CallFault> call_faults(const Case& run, const AttemptSpan& attempt) {
  std::vector<CallFault> faults;
  for (const std::uint32_t position : run.history().of(EventKind::fault_fired)) {
    const Event& event = run.event(position);
    const FaultSpec* spec = run.fault(event);
    if (!spec || event.attempt != attempt.number) continue;
    const Harm harm = info_of(spec->kind).harm;
    if (harm != Harm::call && harm != Harm::message) continue;
    faults.push_back({.position = position, .spec = spec, .event = &event});
  }
  return faults;
}

bool nothing_saved_after(const Case& run, const AttemptSpan& attempt, const Event& fault) {
  // What a publish saves is committed before it is validated.
  const bool committed = fault.phase == Phase::validate || fault.phase == Phase::retire;
  const std::int64_t from = committed ? fault.step + 1 : fault.step;
  const auto saved = run.history().of(EventKind::acknowledged);
  return std::ranges::none_of(saved, [&](const std::uint32_t position) {
    const Event& event = run.event(position);
    return event.attempt == attempt.number && event.step >= from && position > attempt.begin && position < attempt.end;
  });
}

}  // namespace firedrill

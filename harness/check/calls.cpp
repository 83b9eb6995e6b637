#include "harness/check/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <tuple>

#include "engine/job/layout.h"
#include "engine/seam/collective_op.h"

namespace firedrill {
namespace {

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

// The calls of a publish's further tries have the number of the try behind their purpose.
int lap_of(const IssuedCall& call) {
  if (!is_of_a_publish(call.phase)) return 0;
  const std::string_view number = call.call.substr(call.call.rfind('.') + 1);
  int lap = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), lap);
  return error == std::errc() && end == number.data() + number.size() ? lap - 1 : 0;
}

// A receiver that got nothing knows neither type nor size of what was sent.
bool got_nothing(const IssuedCall& call) { return !call.completed && call.call.starts_with("recv"); }

// Members are in one phase of a step when they issue a call: what a first micro-batch does once more may have the
// fingerprint of what comes behind it.
bool agree(const IssuedCall& a, const IssuedCall& b) {
  if (a.phase != b.phase) return false;
  if (!got_nothing(a) && !got_nothing(b)) return a.print == b.print;
  return a.step == b.step && words_in(a.call).back() == words_in(b.call).back();
}

}  // namespace

NamedCall named(const IssuedCall& call) {
  return {.stream = call.stream, .sequence = call.sequence, .step = call.step, .phase = call.phase, .call = call.call};
}

const IssuedCall* Dump::find(std::string_view stream, std::int64_t sequence) const {
  const auto found = std::ranges::find_if(
      calls, [&](const IssuedCall& call) { return call.stream == stream && call.sequence == sequence; });
  return found == calls.end() ? nullptr : &*found;
}

bool AttemptCalls::issued(int rank, std::string_view stream, std::int64_t sequence) const {
  return sequence < next_of(rank, stream);
}

const IssuedCall* Dump::last_completed() const {
  const IssuedCall* last = nullptr;
  for (const IssuedCall& call : calls) {
    if (call.completed) last = &call;
  }
  return last;
}

const IssuedCall* Dump::current(bool aside) const {
  // Of several that were on their way, the one that failed.
  auto found = std::ranges::find_if(
      calls, [aside](const IssuedCall& call) { return call.aside == aside && call.waited_for >= 0; });
  if (found == calls.end()) {
    found =
        std::ranges::find_if(calls, [aside](const IssuedCall& call) { return call.aside == aside && !call.completed; });
  }
  return found == calls.end() ? nullptr : &*found;
}

const IssuedCall* Dump::current() const {
  const IssuedCall* const own = current(false);
  return own != nullptr ? own : current(true);
}

namespace {

// See EventKind::divergence. Of two that belong together what was due comes first.
void note_divergence(const Case& run, const Event& event, Dump& dump) {
  const NamedCall named{.stream = run.history().text(event.name),
                        .sequence = event.a,
                        .step = event.step,
                        .phase = event.phase,
                        .call = run.history().text(event.detail)};
  std::vector<Divergence>& all = dump.divergences;
  switch (event.b) {
    case 0:
      if (dump.gave_up) dump.gave_up->due = named;
      break;
    case 1: all.push_back({.due = named, .came = std::nullopt}); break;
    case 2:
    case 3:
    case 4:
      if (all.empty() || all.back().came) all.push_back({});
      all.back().came = named;
      if (all.back().due || event.b != 4) all.back().again = static_cast<Divergence::Again>(event.b - 2);
      break;
    default: break;
  }
}

}  // namespace

bool told_calls(const Case& run, const AttemptSpan& attempt) {
  const auto of_attempt = [&](std::uint32_t position) { return run.event(position).attempt == attempt.number; };
  return std::ranges::any_of(run.history().of(EventKind::call_record), of_attempt) ||
         std::ranges::any_of(run.history().of(EventKind::divergence), of_attempt);
}

AttemptCalls calls_of(const Case& run, const AttemptSpan& attempt) {
  AttemptCalls calls{.attempt = &attempt, .dumps = {}};
  for (const std::uint32_t position : run.history().of(EventKind::call_record)) {
    const Event& event = run.event(position);
    if (event.attempt != attempt.number) continue;
    Dump& dump = calls.dumps[event.rank];
    if (event.a < 0) {
      const bool aside = run.plan().job.checkpoint.mode == PublishMode::async && is_of_a_publish(event.phase);
      dump.gave_up = GivenUp{.step = event.step, .phase = event.phase, .aside = aside};
      continue;
    }
    const std::int64_t wait = -1 - event.c;  // see EventKind::call_record
    dump.calls.push_back({.stream = run.history().text(event.name),
                          .sequence = event.a,
                          .step = event.step,
                          .phase = event.phase,
                          .call = run.history().text(event.detail),
                          .elements = event.b,
                          .completed = event.c == 1,
                          .waited_for = event.c < 0 ? static_cast<int>(wait % 65536) : -1,
                          .compared = event.c < 0 ? wait / 65536 % 2 == 1 : event.c == 2,
                          .damaged = event.c < 0 && wait / 131072 == 1,
                          .print = event.digest});
    dump.calls.back().aside = dump.calls.back().stream.starts_with("publish");
    dump.calls.back().lap = lap_of(dump.calls.back());
  }
  for (const std::uint32_t position : run.history().of(EventKind::divergence)) {
    const Event& event = run.event(position);
    if (event.attempt == attempt.number) note_divergence(run, event, calls.dumps[event.rank]);
  }
  for (const auto& [rank, dump] : calls.dumps)
    calls.stage[rank] = attempt.layout->pp == 1 ? 0 : place_of(run.plan().job, *attempt.layout, rank).pp;
  for (const std::uint32_t position : run.history().of(EventKind::calls)) {
    const Event& event = run.event(position);
    if (event.attempt != attempt.number) continue;
    if (event.step > 0) calls.past_a_step.insert(event.rank);
    calls.told[event.rank][run.history().text(event.name)] += event.a;
  }
  for (const std::uint32_t position : run.history().of(EventKind::rank_ended)) {
    const Event& event = run.event(position);
    if (event.attempt == attempt.number && event.a == 0) calls.finished.insert(event.rank);
  }
  return calls;
}

std::optional<HitCall> hit_call(const Case& run, const Event& fired) {
  const std::vector<std::string_view> words = words_in(run.history().text(fired.detail));
  if (words.size() < 4 || words[1] != "call" || ranks_of_stream(words[0]).empty()) return std::nullopt;
  HitCall hit{.stream = words[0], .operation = words[3], .purpose = words.size() > 4 ? words[4] : ""};
  const auto [end, error] = std::from_chars(words[2].data(), words[2].data() + words[2].size(), hit.sequence);
  if (error != std::errc()) return std::nullopt;
  return hit;
}

bool comes_before(const IssuedCall& a, const IssuedCall& b) {
  return std::tuple(a.step, a.lap, place_in_work(a.step, a.phase)) <
         std::tuple(b.step, b.lap, place_in_work(b.step, b.phase));
}

std::string_view kind_of(std::string_view stream) { return stream.substr(0, stream.find('[')); }

bool is_of_a_micro_batch(Phase phase) { return phase == Phase::forward || phase == Phase::backward; }

bool alike(const IssuedCall& a, const IssuedCall& b) {
  return a.phase == b.phase && a.call == b.call && kind_of(a.stream) == kind_of(b.stream);
}

namespace {

// How many more ranks have issued such as `a` right ahead of such as `b` than the other way round.
int ahead_in_stream(const AttemptCalls& calls, const IssuedCall& a, const IssuedCall& b) {
  int more = 0;
  for (const auto& [rank, dump] : calls.dumps) {
    const IssuedCall* before = nullptr;
    for (const IssuedCall& call : dump.calls) {
      if (call.stream != a.stream) continue;
      if (before != nullptr) more += (alike(*before, a) && alike(call, b)) - (alike(*before, b) && alike(call, a));
      before = &call;
    }
  }
  return more;
}

// The same of the other groups of its kind, at that place of the same step: micro-batches take turns alike in all.
int ahead_beside(const AttemptCalls& calls, const IssuedCall& a, const IssuedCall& b) {
  int more = 0;
  for (const auto& [rank, dump] : calls.dumps) {
    const IssuedCall* before = nullptr;
    for (const IssuedCall& call : dump.calls) {
      const bool beside = call.stream != a.stream && kind_of(call.stream) == kind_of(a.stream) && call.step == a.step;
      if (!beside || call.sequence + 1 < a.sequence || call.sequence > a.sequence + 1) continue;
      if (before != nullptr && before->stream == call.stream)
        more += (alike(*before, a) && alike(call, b)) - (alike(*before, b) && alike(call, a));
      before = &call;
    }
  }
  return more;
}

// The same of any calls of a step.
int ahead_in_step(const AttemptCalls& calls, const IssuedCall& a, const IssuedCall& b) {
  int more = 0;
  for (const auto& [rank, dump] : calls.dumps) {
    for (std::size_t i = 0; i < dump.calls.size(); ++i) {
      const IssuedCall& first = dump.calls[i];
      const bool like_a = alike(first, a);
      if (!like_a && !alike(first, b)) continue;
      for (std::size_t j = i + 1; j < dump.calls.size() && dump.calls[j].step == first.step; ++j) {
        if (alike(dump.calls[j], like_a ? b : a)) more += like_a ? 1 : -1;
      }
    }
  }
  return more;
}

}  // namespace

bool issued_before(const AttemptCalls& calls, const IssuedCall& a, const IssuedCall& b) {
  if (a.step == b.step && a.stream == b.stream && is_of_a_micro_batch(a.phase) && is_of_a_micro_batch(b.phase)) {
    int ahead = ahead_in_stream(calls, a, b);
    if (ahead == 0) ahead = ahead_beside(calls, a, b);
    if (ahead != 0) return ahead > 0;
  }
  if (comes_before(a, b) || comes_before(b, a)) return comes_before(a, b);
  return a.aside == b.aside && ahead_in_step(calls, a, b) > 0;
}

std::int64_t AttemptCalls::next_of(int rank, std::string_view stream) const {
  std::int64_t next = 0;
  const auto streams = told.find(rank);
  if (streams != told.end()) {
    if (const auto completed = streams->second.find(stream); completed != streams->second.end())
      next = completed->second;
  }
  const auto dump = dumps.find(rank);
  if (dump == dumps.end()) return next;
  for (const IssuedCall& call : dump->second.calls) {
    if (call.stream == stream) next = std::max(next, call.sequence + 1);
  }
  return next;
}

namespace {

const IssuedCall& earlier_record(const Disagreement& one) {
  return comes_before(*one.of_other, *one.of_first) ? *one.of_other : *one.of_first;
}

}  // namespace

std::optional<Disagreement> first_disagreement(const AttemptCalls& calls) {
  std::map<std::pair<std::string_view, std::int64_t>, std::pair<int, const IssuedCall*>> seen;
  // The earliest of each stream by its number, as micro-batches take turns; of these step and phase tell.
  std::vector<Disagreement> of_streams;
  for (const auto& [rank, dump] : calls.dumps) {
    for (const IssuedCall& call : dump.calls) {
      const auto [known, fresh] = seen.try_emplace({call.stream, call.sequence}, rank, &call);
      if (fresh || agree(*known->second.second, call)) continue;
      const Disagreement found{known->second.first, rank, known->second.second, &call};
      const auto of_stream = std::ranges::find_if(
          of_streams, [&call](const Disagreement& other) { return other.of_first->stream == call.stream; });
      if (of_stream == of_streams.end()) {
        of_streams.push_back(found);
      } else if (call.sequence < of_stream->of_first->sequence) {
        *of_stream = found;
      }
    }
  }
  const auto first = std::ranges::min_element(of_streams, [](const Disagreement& a, const Disagreement& b) {
    return comes_before(earlier_record(a), earlier_record(b));
  });
  return first == of_streams.end() ? std::nullopt : std::optional(*first);
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
  tell("phase", to_string(odd.phase), to_string(usual.phase));
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

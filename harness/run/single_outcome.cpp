// What a run with one fault was: read from what the system reported of it, and held against the plan.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>

#include "engine/job/layout.h"
#include "faults/budget.h"
#include "harness/check/attribution.h"
#include "harness/check/calls.h"
#include "harness/run/single_faults.h"

namespace firedrill {
namespace {

// Whom the system names for the end of an attempt, and the operation.
struct Named {
  std::string_view by;     // which part of the system
  std::vector<int> ranks;  // ascending; none: it cannot tell
  std::int64_t step = 0;
  Phase phase = Phase::none;
  std::optional<Blame> blame = {};  // of the guard
};

std::string describe(const Named& named) {
  const bool of_call = named.blame && named.blame->sequence >= 0;
  const std::string call = of_call ? fmt::format("{} call {}", named.blame->stream, named.blame->sequence) : "";
  return fmt::format("{} names rank(s) {} at step {}, {}{}{}", named.by, fmt::join(named.ranks, ", "), named.step,
                     to_string(named.phase), call.empty() ? "" : ", ", call);
}

class Reported {
 public:
  Reported(const Case& run, const AttemptSpan& attempt)
      : run_(run), attempt_(attempt), calls_(calls_of(run, attempt)) {}

  // The most direct that it says.
  std::optional<Named> named() const {
    if (auto found = by_watchdog()) return found;
    if (auto found = by_replicas()) return found;
    if (auto found = by_death()) return found;
    if (auto found = by_guard()) return found;
    return by_own_error();
  }

 private:
  std::vector<const Event*> events(EventKind kind) const {
    std::vector<const Event*> found;
    for (const std::uint32_t position : run_.history().of(kind)) {
      if (run_.event(position).attempt == attempt_.number) found.push_back(&run_.event(position));
    }
    return found;
  }

  std::optional<Named> by_watchdog() const {
    for (const Event* event : events(EventKind::suspected)) {
      if (event->a < 0) continue;
      return Named{
          .by = "the watchdog", .ranks = {static_cast<int>(event->a)}, .step = event->step, .phase = event->phase};
    }
    return std::nullopt;
  }

  std::optional<Named> by_replicas() const {
    for (const Event* event : events(EventKind::replicas_compared)) {
      if (event->b == -1) continue;
      Named named{.by = "the comparison of replicas", .ranks = {}, .step = event->step, .phase = event->phase};
      if (event->b >= 0) named.ranks = {static_cast<int>(event->b)};
      return named;
    }
    return std::nullopt;
  }

  // Ranks that are gone without a word; not those that were killed because of others.
  std::optional<Named> by_death() const {
    std::optional<Named> named;
    for (const Event* event : events(EventKind::rank_ended)) {
      const bool died = event->a == 2 && event->name == 0;
      if (!died && run_.history().text(event->detail) != to_string(Code::dead)) continue;
      if (!named) named = Named{.by = "the supervisor", .ranks = {}, .step = event->step, .phase = event->phase};
      named->ranks.push_back(event->rank);
    }
    if (named) std::ranges::sort(named->ranks);
    return named;
  }

  // An error that no peer has caused.
  std::optional<Named> by_own_error() const {
    for (const Event* event : events(EventKind::rank_ended)) {
      if (event->a != 1 || is_of_others(run_.history().text(event->detail))) continue;
      const auto dump = calls_.dumps.find(event->rank);
      const IssuedCall* current = dump == calls_.dumps.end() ? nullptr : dump->second.current();
      if (current != nullptr && current->waited_for >= 0) continue;
      return Named{.by = "its own error", .ranks = {event->rank}, .step = event->step, .phase = event->phase};
    }
    return std::nullopt;
  }

  static bool is_of_others(std::string_view code) {
    return code == to_string(Code::aborted) || code == to_string(Code::timeout) || code == to_string(Code::mismatch);
  }

  std::optional<Named> by_guard() const {
    const std::optional<Blame> blame = blame_of(run_, attempt_);
    if (!blame) return std::nullopt;
    return Named{.by = "the guard", .ranks = blame->ranks, .step = blame->step, .phase = blame->phase, .blame = blame};
  }

  const Case& run_;
  const AttemptSpan& attempt_;
  AttemptCalls calls_;
};

// "message to rank 2" of a journaled fault: 2.
int peer_in(std::string_view words) {
  int peer = -1;
  const std::size_t space = words.rfind(' ');
  if (space != std::string_view::npos) std::from_chars(words.data() + space + 1, words.data() + words.size(), peer);
  return peer;
}

// Holds what was named against the fault that fired.
class Attribution {
 public:
  Attribution(const Case& run, const FaultSpec& fault, const Event& fired) : run_(run), fault_(fault), fired_(fired) {}

  bool is_right(const Named& named) const {
    switch (info_of(fault_.kind).harm) {
      case Harm::message: return of_link(named);
      case Harm::call: return of_call(named);
      case Harm::computation: return fault_.kind == FaultKind::corrupt_payload ? of_link(named) : of_damage(named);
      case Harm::none: return named.ranks == std::vector<int>{fired_.rank} && fired_at(named);
      case Harm::death: return named.ranks == hit_ranks() && died_at_place();
      default: return named.ranks == std::vector<int>{fired_.rank} && at_place(named);
    }
  }

 private:
  bool at_place(const Named& named) const {
    if (named.step == fired_.step && named.phase == fired_.phase) return true;
    // A rank that stops as a whole while it publishes aside is missed where its main task stood as well: that waits for
    // the publish ahead of the next save.
    const CheckpointSpec& saves = run_.plan().job.checkpoint;
    const bool aside = saves.mode == PublishMode::async && is_of_a_publish(fired_.phase);
    return aside && fault_.kind == FaultKind::hang && is_of_training(named.phase) && named.step >= fired_.step &&
           named.step <= fired_.step + saves.every;
  }

  // Of a node, each rank where it stands.
  bool died_at_place() const {
    return std::ranges::any_of(run_.history().of(EventKind::rank_ended), [&](std::uint32_t position) {
      const Event& event = run_.event(position);
      return event.attempt == fired_.attempt && event.rank == fired_.rank && event.step == fired_.step &&
             event.phase == fired_.phase;
    });
  }

  // At one of the calls that it slowed down.
  bool fired_at(const Named& named) const {
    return std::ranges::any_of(run_.history().of(EventKind::fault_fired), [&](std::uint32_t position) {
      const Event& event = run_.event(position);
      return event.step == named.step && event.phase == named.phase;
    });
  }

  // Whoever had finished by then was hit no more.
  bool had_finished(int rank) const {
    return std::ranges::any_of(run_.history().of(EventKind::rank_ended), [&](std::uint32_t position) {
      const Event& event = run_.event(position);
      return event.attempt == fired_.attempt && event.rank == rank && event.a == 0;
    });
  }

  std::vector<int> hit_ranks() const {
    std::vector<int> ranks;
    for (int rank = 0; rank < run_.plan().layout.world_size(); ++rank) {
      const bool of_node = fault_.kind == FaultKind::kill_node &&
                           node_of(run_.plan().job, rank) == node_of(run_.plan().job, fired_.rank);
      if ((of_node && !had_finished(rank)) || rank == fired_.rank) ranks.push_back(rank);
    }
    return ranks;
  }

  // One that was under way when training had gone on.
  static bool of_publish_aside(const Named& named) { return named.blame && named.blame->stream.starts_with("publish"); }

  // Both ends; of a border that is cut any two that lie on its sides, of which one may be in the step before.
  bool of_link(const Named& named) const {
    if (named.ranks.size() == 2 && fault_.kind == FaultKind::partition) {
      const Job& job = run_.plan().job;
      return node_of(job, named.ranks[0]) != node_of(job, named.ranks[1]) &&
             std::ranges::any_of(named.ranks,
                                 [&](int rank) { return node_of(job, rank) == node_of(job, fired_.rank); }) &&
             (named.step + 1 >= fired_.step || of_publish_aside(named));
    }
    // Whoever cannot let go of a message is stuck.
    const bool held = fault_.kind == FaultKind::delay_message && named.ranks == std::vector<int>{fired_.rank};
    if (held) return at_place(named);
    std::vector<int> ends = {fired_.rank, peer_in(run_.history().text(fired_.detail))};
    std::ranges::sort(ends);
    return named.ranks == ends && at_place(named);
  }

  // The rank that was hit; in a group of two also both, as nobody can tell which of two is wrong.
  bool of_call(const Named& named) const {
    const std::string_view words = run_.history().text(fired_.detail);
    const std::string_view stream = words.substr(0, words.find(' '));
    std::vector<int> members = ranks_of_stream(stream);  // of two the sender first
    std::ranges::sort(members);
    const bool both = named.ranks == members && named.ranks.size() == 2 &&
                      std::ranges::find(named.ranks, static_cast<int>(fired_.rank)) != named.ranks.end();
    if (!both && named.ranks != std::vector<int>{fired_.rank}) return false;
    // Which call it was tells more than its phase: see failures_are_attributed.
    if (named.blame && named.blame->sequence >= 0)
      return named.step == fired_.step && is_at_call(run_, *named.blame, fired_);
    return at_place(named);
  }

  // In the step that it hit; what replicas hold is compared when the step is done, or later.
  bool of_damage(const Named& named) const {
    if (named.ranks != std::vector<int>{fired_.rank}) return false;
    if (named.by != "the comparison of replicas") return at_place(named);
    return named.step >= fired_.step && named.step < fired_.step + run_.plan().layout.replica_check;
  }

  const Case& run_;
  const FaultSpec& fault_;
  const Event& fired_;
};

// What a failed or unknown trial is a finding of.
SingleOutcome finding_of(const Trial& trial) {
  if (trial.verdict == RunVerdict::liveness) return SingleOutcome::left_waiting;
  const bool alarm = trial.evidence.find("false alarm") != std::string::npos;
  if (trial.property == "failure_detected_in_time")
    return alarm ? SingleOutcome::false_alarm : SingleOutcome::left_waiting;
  if (trial.property == "failures_are_attributed" || trial.property == "collectives_agree")
    return SingleOutcome::misattributed;
  static constexpr std::array<std::string_view, 5> of_results = {"resume_equals_golden", "replicas_agree",
                                                                 "samples_exactly_once", "ranks_restore_the_same",
                                                                 "nothing_from_an_old_attempt"};
  if (std::ranges::find(of_results, trial.property) != of_results.end()) return SingleOutcome::silently_wrong;
  return SingleOutcome::failed;
}

// A correct system goes on under it.
bool must_be_harmless(const FaultSpec& fault, const Job& job) {
  switch (fault.kind) {
    case FaultKind::slow: return slows_within_bound(fault, job);
    case FaultKind::delay_message: return fault.delay < job.cluster.deadline;
    case FaultKind::clock_skew:
    case FaultKind::duplicate_message:
    case FaultKind::slow_link:
    case FaultKind::flaky_link:
    case FaultKind::slow_shard: return true;
    default: return false;
  }
}

// Replicas of the damaged rank's parameters, itself among them.
bool too_few_to_tell(const Plan& plan) { return plan.layout.dp < 3 && !plan.layout.rerun; }

// Outcomes of rank_ended.
constexpr std::int64_t finished = 0;
constexpr std::int64_t left = 4;

// All have left as agreed, or the one that was told to leave was killed for staying.
bool left_in_order(const Case& run, const Event& fired) {
  const auto ended = run.history().of(EventKind::rank_ended);
  return std::ranges::all_of(ended, [&](std::uint32_t position) {
    const Event& event = run.event(position);
    return event.attempt != fired.attempt || event.a == finished || event.a == left || event.rank == fired.rank;
  });
}

}  // namespace

std::string_view to_string(SingleOutcome outcome) {
  static constexpr std::array<std::string_view, single_outcome_count> names = {
      "harmless", "attributed", "detected", "silently wrong", "left waiting", "misattributed", "false alarm", "failed"};
  return names[static_cast<std::size_t>(outcome)];
}

SingleResult judge_undisturbed(const Trial& trial, const History& history, const Plan&) {
  if (trial.verdict != RunVerdict::pass)
    return {finding_of(trial), fmt::format("{}: {}", trial.property, trial.evidence)};
  if (history.of(EventKind::attempt_started).size() == 1 && history.of(EventKind::suspected).empty())
    return {SingleOutcome::harmless, {}};
  return {SingleOutcome::false_alarm, "an attempt ended, and nothing was wrong"};
}

SingleResult judge_single_fault(const Trial& trial, const History& history, const Plan& plan) {
  if (trial.verdict != RunVerdict::pass)
    return {finding_of(trial), fmt::format("{}: {}", trial.property, trial.evidence)};
  if (trial.faults_fired == 0) return {SingleOutcome::failed, "the fault never fired"};
  const Case run(history, plan);
  const FaultSpec& fault = plan.faults.front();
  const Event& fired = run.event(history.of(EventKind::fault_fired).front());
  if (run.attempts().size() == 1) return {SingleOutcome::harmless, {}};
  if (must_be_harmless(fault, plan.job))
    return {SingleOutcome::false_alarm, "an attempt ended, and nothing that was wrong is a reason"};
  if (info_of(fault.kind).harm == Harm::leave) {
    return left_in_order(run, fired)
               ? SingleResult{SingleOutcome::attributed, {}}
               : SingleResult{SingleOutcome::misattributed,
                              "others than the rank that was told to leave did not leave in order"};
  }
  const std::optional<Named> named = Reported(run, run.attempts().front()).named();
  if (!named) return {SingleOutcome::misattributed, "nobody is named"};
  if (Attribution(run, fault, fired).is_right(*named)) return {SingleOutcome::attributed, {}};
  if (named->ranks.empty() && too_few_to_tell(plan)) return {SingleOutcome::detected, {}};
  return {SingleOutcome::misattributed,
          fmt::format("{}, and it was rank {} at step {}, {} ({})", describe(*named), fired.rank, fired.step,
                      to_string(fired.phase), history.text(fired.detail))};
}

}  // namespace firedrill

// Whether a fault can happen at all, in this job and layout.
#include <algorithm>
#include <array>

#include "engine/base/units.h"
#include "faults/budget.h"
#include "faults/mistakes.h"
#include "faults/operations.h"
#include "faults/trigger.h"

namespace firedrill {
namespace {

void check_numbers(const FaultSpec& fault, const Job& job, const Layout& layout, Mistakes& mistakes) {
  const Where& at = fault.at;
  const int ranks = layout.world_size();
  if (at.rank < 0 || at.rank >= ranks) {
    mistakes.add("at.rank is {}: layout {} has ranks 0 to {}", at.rank, to_string(layout), ranks - 1);
  }
  if (at.attempt && *at.attempt < 1)
    mistakes.add("at.attempt is {}: attempts count from 1, or give `any`", *at.attempt);
  if (at.step && (*at.step < 0 || *at.step > job.steps)) {
    mistakes.add("at.step is {}: the job has steps 1 to {} (0 is before the first)", *at.step, job.steps);
  }
  if (at.nth < 1) mistakes.add("at.nth is {}: calls count from 1", at.nth);
  if (fault.times < 0) mistakes.add("times is {}: give 1 or more, or 0 for without end", fault.times);
}

// The steps that save and are nearest to `step`, for the remedy.
std::string saving_steps_near(std::int64_t step, const Job& job) {
  const int every = job.checkpoint.every;
  if (every == 0) return fmt::format("checkpoint.every is 0, so only step {} does", job.steps);
  const std::int64_t below = step / every * every;
  const std::int64_t above = std::min<std::int64_t>(below + every, job.steps);
  if (below < 1) return fmt::format("the first one that does is {}", above);
  return fmt::format("the nearest that do are {} and {}", below, above);
}

void check_phase(const FaultSpec& fault, const Job& job, Mistakes& mistakes) {
  const Where& at = fault.at;
  if (!at.phase) return;
  const Phase phase = *at.phase;
  if (at.step && saves(phase) && *at.step >= 1 && *at.step <= job.steps) {
    if (!save_due(*at.step, job)) {
      mistakes.add("at.step is {} and at.phase {}: that step saves nothing; {}", *at.step, to_string(phase),
                   saving_steps_near(*at.step, job));
    }
  }
  if (at.step && *at.step == 0 && !before_the_first_step(phase) && phase != Phase::none) {
    mistakes.add("at.step is 0 and at.phase {}: before the first step there are only rendezvous, find and restore",
                 to_string(phase));
  }
  if (at.step && *at.step > 0 && before_the_first_step(phase)) {
    mistakes.add("at.step is {} and at.phase {}: it is over before an attempt computes a step; leave at.step out",
                 *at.step, to_string(phase));
  }
  if (phase == Phase::restore && at.attempt == 1) {
    mistakes.add(
        "at.attempt is 1 and at.phase restore: the first attempt restores nothing; give `attempt: any`, or "
        "the number of a later one");
  }
}

// What the fault says of its operation, against itself.
void check_operation(const FaultSpec& fault, const Layout& layout, Mistakes& mistakes) {
  const Where& at = fault.at;
  if (at.op && info_of(fault.kind).seams != 0 && !can_be_about(fault.kind, *at.op)) {
    const bool calls = can_be_about(fault.kind, SeamOp::collective);
    const bool messages = can_be_about(fault.kind, SeamOp::send);
    mistakes.add("at.op is {}: {} is about {}; name that, or leave at.op out", to_string(*at.op), to_string(fault.kind),
                 calls      ? "collective calls"
                 : messages ? "messages"
                            : names_of(operations_of_kind(fault.kind)));
  }
  if (at.op && *at.op != SeamOp::file) {
    if (at.file_op)
      mistakes.add("at.op is {} and also {}: give one of them", to_string(*at.op), to_string(*at.file_op));
    if (!at.path.empty()) {
      mistakes.add("at.path is {} and at.op {}: only file operations have a path", at.path, to_string(*at.op));
    }
    if (of_files(fault.kind)) {
      mistakes.add("at.op is {}: {} is about file operations; name one, or leave at.op out", to_string(*at.op),
                   to_string(fault.kind));
    }
  }
  if (at.file_op && !kind_fits(fault.kind, {.op = SeamOp::file, .file_op = *at.file_op})) {
    FaultSpec any_op = fault;
    any_op.at.file_op.reset();
    mistakes.add("at.op is {}: {}{} is for {}", to_string(*at.file_op),
                 fault.kind == FaultKind::no_space ? "it needs no room on the storage; " : "", to_string(fault.kind),
                 names_of(operations_of(any_op) & only(SeamOp::file)));
  }
  if (layout.world_size() == 1 && (at.op == SeamOp::send || at.op == SeamOp::recv)) {
    mistakes.add("at.op is {}: layout {} has one rank, which sends nothing; use a layout of more ranks",
                 to_string(*at.op), to_string(layout));
  }
}

// What a rank computes in a phase, against what the fault is to damage.
void check_target(const FaultSpec& fault, Mistakes& mistakes) {
  if (!fault.at.phase) return;
  const Phase phase = *fault.at.phase;
  if (fault.kind == FaultKind::exception && phase != Phase::forward && phase != Phase::backward &&
      phase != Phase::optimizer) {
    mistakes.add("at.phase is {}: exception is for forward, backward or optimizer", to_string(phase));
  }
  if (fault.kind != FaultKind::bit_flip && fault.kind != FaultKind::nan) return;
  const bool updated = fault.target == Target::parameter || fault.target == Target::moment;
  const bool fits = updated                              ? phase == Phase::optimizer
                    : fault.target == Target::activation ? phase == Phase::forward || phase == Phase::backward
                                                         : phase == Phase::backward;
  if (fits) return;
  mistakes.add("at.phase is {} and the target {}: that is computed in {}; give that phase, or leave at.phase out",
               to_string(phase), to_string(fault.target),
               updated                              ? "optimizer"
               : fault.target == Target::activation ? "forward"
                                                    : "backward");
}

// What the options of its kind say, and `when` and `path` where the kind gives them a meaning of their own.
void check_kind(const FaultSpec& fault, Mistakes& mistakes) {
  const FaultKindInfo& info = info_of(fault.kind);
  const Where& at = fault.at;
  if (at.when == When::after && !info.has_after) {
    mistakes.add("at.when is after: {} changes the call itself, so there is nothing after it; leave at.when out",
                 info.name);
  }
  const bool may_be_a_checkpoint = at.path.empty() ||
                                   at.path.find_first_of("*?") < std::string_view("shards/").size() ||
                                   at.path.starts_with("shards/") || at.path.starts_with("manifests/");
  if (info.checkpoints_only && !may_be_a_checkpoint) {
    mistakes.add(
        "at.path is {}: {} hits files below shards/ and manifests/ only; others have one copy, for which "
        "nothing stands in",
        at.path, info.name);
  }
  if (fault.kind != FaultKind::kill_node && (fault.lose_unsynced_data || fault.lose_unsynced_names)) {
    mistakes.add("{} cannot lose unsynced data or names: only kill_node can, as its caches go with the node",
                 info.name);
  }
  if ((fault.kind == FaultKind::slow_disk || fault.kind == FaultKind::slow_shard) && fault.delay <= Duration{0}) {
    mistakes.add("{}.delay is {}: give how much longer the operation takes, such as 50ms", info.name,
                 format_duration(fault.delay));
  }
  if (fault.kind == FaultKind::slow && fault.delay <= Duration{0}) {
    mistakes.add("slow.delay is {}: give how much longer each call takes, such as 20ms", format_duration(fault.delay));
  }
  if (fault.code < 0 || fault.code > 255) mistakes.add("exit.code is {}: exit codes are 0 to 255", fault.code);
  check_target(fault, mistakes);
  if (fault.looks < 0) mistakes.add("late_visibility.looks is {}: give 0 or more", fault.looks);
  if (fault.kind == FaultKind::clock_skew && (fault.ahead > Duration{0}) == (fault.behind > Duration{0})) {
    mistakes.add("clock_skew needs one of `ahead` and `behind`, such as {{ahead: 2h}}");
  }
}

void check_link(const FaultSpec& fault, const Layout& layout, Mistakes& mistakes) {
  const std::string_view name = to_string(fault.kind);
  const int ranks = layout.world_size();
  if (info_of(fault.kind).harm != Harm::message) return;
  if (ranks == 1) {
    mistakes.add("{} needs a second rank: layout {} has one, which sends nothing; use a layout of more ranks", name,
                 to_string(layout));
  } else if (fault.peer && (*fault.peer < 0 || *fault.peer >= ranks || *fault.peer == fault.at.rank)) {
    mistakes.add("{}.peer is {}: give another rank than {} of 0 to {}", name, *fault.peer, fault.at.rank, ranks - 1);
  }
  const bool takes_time = fault.kind == FaultKind::delay_message || fault.kind == FaultKind::slow_link ||
                          fault.kind == FaultKind::flaky_link;
  if (takes_time && fault.delay <= Duration{0}) {
    mistakes.add("{}.delay is {}: give how much later messages come, such as 5ms", name, format_duration(fault.delay));
  }
  if (fault.lasts < Duration{0}) mistakes.add("{}.lasts is negative: give 0 (to the end of the attempt) or more", name);
  if (fault.every < 2)
    mistakes.add("{}.every is {}: give 2 or more, or nothing would arrive in time", name, fault.every);
  static constexpr std::array<std::string_view, 9> groups = {"dp", "tp",        "cp",        "pp",   "model",
                                                             "ep", "expert.cp", "expert.dp", "world"};
  if (!fault.group.empty() && std::ranges::find(groups, fault.group) == groups.end()) {
    mistakes.add("{}.group is {}: give dp, tp, cp, pp, model, ep, expert.cp, expert.dp or world", name, fault.group);
  }
}

std::string described(const Operations& about) {
  if (about.all()) return "any";
  return about == only(SeamOp::file) ? "file" : names_of(about);
}

// Why the fault's operation never occurs in its phase, and what does.
void explain_phase(const FaultSpec& fault, const Job& job, const Operations& about, Mistakes& mistakes) {
  const Phase phase = *fault.at.phase;
  const CatalogKind catalog = job.checkpoint.catalog;
  const std::string name(to_string(phase));
  const Operations here = operations_in(phase, fault.at.rank == 0, fault.at.attempt == 1, catalog);
  if ((about & operations_in(phase, fault.at.rank == 0, false, catalog)).any()) {
    mistakes.add(
        "at.attempt is 1 and at.phase {}, the operation {}: the first attempt has no checkpoint to look at; give "
        "`attempt: any`, or the number of a later one",
        name, described(about));
  } else if ((about & operations_in(phase, true, fault.at.attempt == 1, catalog)).any()) {
    mistakes.add("at.rank is {} and at.phase {}, the operation {}: only rank 0, the coordinator, does that there; {}",
                 fault.at.rank, name, described(about),
                 here.none() ? "give rank 0, or another phase" : "give rank 0, or one of " + names_of(here));
  } else {
    mistakes.add("at.phase is {} and the operation {}: that phase has none; give another phase, or one of {}", name,
                 described(about), names_of(operations_in(phase, true, false, catalog)));
  }
}

// Why the fault's operation never occurs at its step, or on its rank at all.
void explain_step_or_rank(const FaultSpec& fault, const Job& job, const Operations& about, Mistakes& mistakes) {
  Where anywhen = fault.at;
  anywhen.step.reset();
  const Operations ever = operations_at(anywhen, job);
  if (!fault.at.step || (about & ever).none()) {
    mistakes.add(
        "at.rank is {} and the operation {}: only rank 0, the coordinator, does that; give rank 0, or one of {}",
        fault.at.rank, described(about), names_of(ever));
    return;
  }
  const std::int64_t step = *fault.at.step;
  Where saving = fault.at;
  saving.step = job.steps;
  if (step > 0 && (about & operations_at(saving, job)).any()) {
    mistakes.add("at.step is {} and the operation {}: that step saves nothing, and only a save does that; {}", step,
                 described(about), saving_steps_near(step, job));
  } else {
    mistakes.add(
        "at.step is {} and the operation {}: rank {} never does that there; leave at.step out, or give one of {}", step,
        described(about), fault.at.rank, names_of(operations_at(fault.at, job)));
  }
}

Operations exchanging() { return only(SeamOp::collective) | only(SeamOp::send) | only(SeamOp::recv); }

// Whether ranks of the layout exchange something in that phase of a step, which operations_in does not know.
bool talks_in_a_step(const FaultSpec& fault, const Layout& layout) {
  const bool splits_a_lane = layout.tp * layout.cp * layout.pp * layout.ep > 1 || layout.zero == 3;
  switch (fault.at.phase.value_or(Phase::none)) {
    case Phase::forward:
    case Phase::backward: return splits_a_lane;
    case Phase::optimizer: return layout.zero > 0;
    default: return false;
  }
}

// An operation that the rank never does where the fault waits for it.
void check_occurrence(const FaultSpec& fault, const Job& job, const Layout& layout, Mistakes& mistakes) {
  const Operations about = operations_of(fault);
  if (talks_in_a_step(fault, layout) && (about & exchanging()).any()) return;
  // One that contradicts itself is told so already.
  if (about.none() || (about & operations_at(fault.at, job)).any()) return;
  if (fault.at.phase) {
    explain_phase(fault, job, about, mistakes);
  } else {
    explain_step_or_rank(fault, job, about, mistakes);
  }
}

}  // namespace

const Layout& layout_for(const FaultSpec& fault, const Layout& first, const std::optional<Layout>& restarts) {
  if (!restarts) return first;
  if (fault.at.attempt) return *fault.at.attempt > 1 ? *restarts : first;
  return restarts->world_size() > first.world_size() ? *restarts : first;
}

std::vector<std::string> mistakes_in_fault(const FaultSpec& fault, const Job& job, const Layout& layout) {
  Mistakes mistakes;
  check_numbers(fault, job, layout, mistakes);
  check_phase(fault, job, mistakes);
  check_operation(fault, layout, mistakes);
  check_occurrence(fault, job, layout, mistakes);
  check_kind(fault, mistakes);
  check_link(fault, layout, mistakes);
  return mistakes.take();
}

}  // namespace firedrill

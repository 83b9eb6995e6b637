#include "faults/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "faults/injector.h"
#include "faults/operations.h"

namespace firedrill {
namespace {

// Messages begin with the field they are about.
class Mistakes {
 public:
  template <class... Args>
  void add(fmt::format_string<Args...> text, Args&&... args) {
    found_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }
  std::vector<std::string> take() { return std::move(found_); }

 private:
  std::vector<std::string> found_;
};

bool needs_room(FileOp op) { return op == FileOp::write || op == FileOp::create || op == FileOp::make_directory; }

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
  if (fault.kind == FaultKind::no_space && at.file_op && !needs_room(*at.file_op)) {
    mistakes.add("at.op is {}: it needs no room on the storage; no_space is for write, create and make_directory",
                 to_string(*at.file_op));
  }
  if (layout.world_size() == 1 && (at.op == SeamOp::send || at.op == SeamOp::recv)) {
    mistakes.add("at.op is {}: layout {} has one rank, which sends nothing; use a layout of more ranks",
                 to_string(*at.op), to_string(layout));
  }
}

std::string described(const Operations& about) {
  if (about.all()) return "any";
  return about == only(SeamOp::file) ? "file" : names_of(about);
}

// Why the fault's operation never occurs in its phase, and what does.
void explain_phase(const FaultSpec& fault, const Operations& about, Mistakes& mistakes) {
  const Phase phase = *fault.at.phase;
  const std::string name(to_string(phase));
  const Operations here = operations_in(phase, fault.at.rank == 0, fault.at.attempt == 1);
  if ((about & operations_in(phase, true, fault.at.attempt == 1)).any()) {
    mistakes.add("at.rank is {} and at.phase {}, the operation {}: only rank 0, the coordinator, does that there; {}",
                 fault.at.rank, name, described(about),
                 here.none() ? "give rank 0, or another phase" : "give rank 0, or one of " + names_of(here));
  } else if ((about & operations_in(phase, fault.at.rank == 0, false)).any()) {
    mistakes.add(
        "at.attempt is 1 and at.phase {}, the operation {}: the first attempt has no checkpoint to look at; give "
        "`attempt: any`, or the number of a later one",
        name, described(about));
  } else {
    mistakes.add("at.phase is {} and the operation {}: that phase has none; give another phase, or one of {}", name,
                 described(about), names_of(operations_in(phase, true, false)));
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

// An operation that the rank never does where the fault waits for it.
void check_occurrence(const FaultSpec& fault, const Job& job, Mistakes& mistakes) {
  const Operations about = operations_of(fault);
  // One that contradicts itself is told so already.
  if (about.none() || (about & operations_at(fault.at, job)).any()) return;
  if (fault.at.phase) {
    explain_phase(fault, about, mistakes);
  } else {
    explain_step_or_rank(fault, job, about, mistakes);
  }
}

// A publish is tried three times: an error that fails one try ends nothing by itself.
constexpr int tries_a_publish = 3;

// Whether the fault can do no more than fail a try of a publish; what cannot be retired now is retired later.
bool only_fails_tries(const FaultSpec& fault) {
  return of_files(fault.kind) && fault.at.phase && saves(*fault.at.phase) && fault.times > 0;
}

int tries_failed_by(const FaultSpec& fault) {
  if (fault.at.phase == Phase::retire) return 0;
  return fault.at.attempt ? std::min(fault.times, tries_a_publish) : fault.times;
}

// The most attempts that one fault can end; nothing if there is no bound.
std::optional<int> attempts_ended_by(const FaultSpec& fault) {
  if (fault.at.attempt) return 1;
  if (fault.times == 0) return std::nullopt;
  return fault.times;
}

// Whether the attempts before that of faults[waiting] can all end. A fault of one attempt ends no other, and two of the
// same attempt end it once.
bool is_reached(const std::vector<FaultSpec>& faults, std::size_t waiting, Job job) {
  const int attempt = *faults[waiting].at.attempt;
  std::vector<FaultSpec> able;
  std::set<int> ended;
  for (const FaultSpec& fault : faults) {
    if (!fault.at.attempt || only_fails_tries(fault)) {
      if (fault.at.attempt.value_or(1) < attempt) able.push_back(fault);
    } else if (*fault.at.attempt < attempt && ended.insert(*fault.at.attempt).second) {
      able.push_back(fault);
    }
  }
  // A failed publish is not always survived: that of the last step ends the attempt whatever the job says.
  job.checkpoint.on_error = OnError::stop;
  const std::optional<int> most = attempts_ended_at_most(able, job);
  return !most || *most >= attempt - 1;
}

}  // namespace

std::vector<std::string> mistakes_in_fault(const FaultSpec& fault, const Job& job, const Layout& layout) {
  Mistakes mistakes;
  check_numbers(fault, job, layout, mistakes);
  check_phase(fault, job, mistakes);
  check_operation(fault, layout, mistakes);
  check_occurrence(fault, job, mistakes);
  if (fault.kind != FaultKind::kill_node && (fault.lose_unsynced_data || fault.lose_unsynced_names)) {
    mistakes.add("{} cannot lose unsynced data or names: only kill_node can, as its caches go with the node",
                 to_string(fault.kind));
  }
  return mistakes.take();
}

std::optional<int> attempts_ended_at_most(const std::vector<FaultSpec>& faults, const Job& job) {
  int ended = 0;
  int failed_tries = 0;
  for (const FaultSpec& fault : faults) {
    if (only_fails_tries(fault)) {
      failed_tries += tries_failed_by(fault);
      continue;
    }
    const std::optional<int> more = attempts_ended_by(fault);
    if (!more) return std::nullopt;
    ended += *more;
  }
  const bool goes_on = job.checkpoint.on_error == OnError::continue_training;
  const int failed_publishes_survived = goes_on ? job.checkpoint.failures_max : 0;
  return ended + failed_tries / tries_a_publish / (failed_publishes_survived + 1);
}

std::vector<std::string> mistakes_in_number(const std::vector<FaultSpec>& faults) {
  Mistakes mistakes;
  std::set<std::pair<int, int>> told;  // rank and attempt
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const Where& at = faults[i].at;
    // Those of any attempt meet at their most in an attempt that others name.
    const int attempt = at.attempt.value_or(1);
    if (!told.emplace(at.rank, attempt).second) continue;
    const auto can_hit = [&at, attempt](const FaultSpec& other) {
      return other.at.rank == at.rank && other.at.attempt.value_or(attempt) == attempt;
    };
    const auto number = static_cast<std::size_t>(std::count_if(faults.begin(), faults.end(), can_hit));
    if (number <= Injector::capacity) continue;
    mistakes.add(
        "faults[{}] ({}) is one of {} that can hit rank {} in attempt {}: at most {} can; plan fewer, or give "
        "some of them another rank or attempt",
        i, describe(faults[i]), number, at.rank, attempt, Injector::capacity);
  }
  return mistakes.take();
}

std::vector<std::string> mistakes_in_budget(const std::vector<FaultSpec>& faults, const Job& job, int restart_budget) {
  Mistakes mistakes;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const FaultSpec& fault = faults[i];
    if (!attempts_ended_by(fault)) {
      mistakes.add(
          "faults[{}] ({}) has times 0 and attempt any: it ends every attempt that reaches it, so no system "
          "gets past; give `times: N`, or the number of an attempt",
          i, describe(fault));
    }
    if (fault.at.attempt && *fault.at.attempt > restart_budget + 1) {
      mistakes.add("faults[{}] ({}) waits for attempt {}: with recovery.budget {} there are attempts 1 to {}", i,
                   describe(fault), *fault.at.attempt, restart_budget, restart_budget + 1);
    } else if (fault.at.attempt && *fault.at.attempt > 1 && !is_reached(faults, i, job)) {
      mistakes.add(
          "faults[{}] ({}) waits for attempt {}: the other faults cannot end the {} before it, so it never starts; "
          "plan one that ends each of them, or give an earlier attempt",
          i, describe(fault), *fault.at.attempt, *fault.at.attempt - 1);
    }
  }
  const std::optional<int> ended = attempts_ended_at_most(faults, job);
  if (ended && *ended > restart_budget) {
    mistakes.add(
        "the faults can end {} attempts and recovery.budget allows {} restarts: no system can survive that; "
        "raise recovery.budget to {}, or plan fewer faults",
        *ended, restart_budget, *ended);
  }
  return mistakes.take();
}

}  // namespace firedrill

// Whether any system could survive the plan.
#include "faults/budget.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "engine/base/units.h"
#include "engine/seam/pulse.h"
#include "faults/injector.h"
#include "faults/mistakes.h"
#include "faults/operations.h"

namespace firedrill {
namespace {

// Whether the fault can do no more than fail a try of a publish; what cannot be retired now is retired later.
bool only_fails_tries(const FaultSpec& fault) {
  return of_files(fault.kind) && fault.at.phase && saves(*fault.at.phase) && fault.times > 0;
}

// A correct engine goes on under it, in the same try.
bool ends_nothing(const FaultSpec& fault, const Job& job) {
  switch (fault.kind) {
    case FaultKind::slow: return slows_within_bound(fault, job);
    case FaultKind::slow_disk:
    case FaultKind::slow_shard:
    case FaultKind::clock_skew:
    case FaultKind::lying_sync: return true;
    default: return false;
  }
}

int tries_failed_by(const FaultSpec& fault, const Job& job) {
  if (fault.at.phase == Phase::retire || ends_nothing(fault, job)) return 0;
  // A name that is not seen yet may be looked for once in each try.
  const int times = fault.times * (fault.kind == FaultKind::late_visibility ? std::max(1, fault.looks) : 1);
  return fault.at.attempt ? std::min(times, tries_a_publish) : times;
}

// A publish that fails behind the last step ends the attempt, whatever checkpoint.on_error says.
bool can_hit_the_last_publish(const FaultSpec& fault, const Job& job) {
  return !fault.at.step || *fault.at.step >= job.steps;
}

// The most attempts that one fault can end; nothing if there is no bound.
std::optional<int> attempts_ended_by(const FaultSpec& fault, const Job& job) {
  if (ends_nothing(fault, job)) return 0;
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
    if (ends_nothing(fault, job)) continue;
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

bool loses_power(const FaultSpec& fault) {
  return fault.kind == FaultKind::lose_unsynced_data || fault.kind == FaultKind::lose_unsynced_names ||
         fault.lose_unsynced_data || fault.lose_unsynced_names;
}

void check_durability(const std::vector<FaultSpec>& faults, Mistakes& mistakes) {
  const auto find = [&faults](auto fits) { return std::find_if(faults.begin(), faults.end(), fits) - faults.begin(); };
  const auto lie = find([](const FaultSpec& fault) { return fault.kind == FaultKind::lying_sync; });
  const auto loss = find(loses_power);
  if (lie == std::ssize(faults) || loss == std::ssize(faults)) return;
  mistakes.add(
      "faults[{}] ({}) and faults[{}] ({}) together are beyond any system: what a sync promised and did not do goes "
      "with "
      "the power; plan one of them",
      lie, describe(faults[static_cast<std::size_t>(lie)]), loss, describe(faults[static_cast<std::size_t>(loss)]));
}

// The one checkpoint that a path can mean: "shards/4-1-1/*"; empty: it can mean several.
std::string checkpoint_in(std::string_view path) {
  const std::size_t slash = path.find('/');
  if (slash == std::string_view::npos) return {};
  const std::string_view rest = path.substr(slash + 1);
  const std::string_view name = rest.substr(0, rest.find('/'));
  return name.find_first_of("*?") == std::string_view::npos ? std::string(name) : std::string();
}

// It can damage a checkpoint that has its mark: not one that is still to be read back.
bool hits_validated(const FaultSpec& fault) {
  if (info_of(fault.kind).harm != Harm::rest_damaged) return false;
  return fault.at.phase != Phase::validate || fault.at.when == When::after;
}

// Saves that are done before the first of the faults that end an earlier attempt; nothing if that cannot be told.
std::optional<int> saves_before(const std::vector<FaultSpec>& faults, const FaultSpec& fault, const Job& job) {
  std::optional<int> saves;
  for (const FaultSpec& other : faults) {
    const bool earlier = other.at.attempt && fault.at.attempt && *other.at.attempt < *fault.at.attempt;
    if (!earlier || !other.at.step || !takes_ranks(other.kind)) continue;
    int done = 0;
    for (std::int64_t step = 1; step < *other.at.step; ++step) done += save_due(step, job) ? 1 : 0;
    saves = std::max(saves.value_or(0), done);
  }
  return saves;
}

// One validated checkpoint must stay intact.
void check_rest(const std::vector<FaultSpec>& faults, const Job& job, Mistakes& mistakes) {
  std::set<std::string> named;
  int others = 0;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const FaultSpec& fault = faults[i];
    if (!hits_validated(fault)) continue;
    const std::string checkpoint = checkpoint_in(fault.at.path);
    if (checkpoint.empty() && fault.times == 0) {
      mistakes.add(
          "faults[{}] ({}) can damage every checkpoint that is kept: no system survives that; give `times: N`, or name "
          "one checkpoint in at.path",
          i, describe(fault));
      return;
    }
    if (checkpoint.empty()) {
      others += fault.times;
    } else {
      named.insert(checkpoint);
    }
    const int hit = others + static_cast<int>(named.size());
    const int kept = std::min(job.checkpoint.keep_validated,
                              saves_before(faults, fault, job).value_or(job.checkpoint.keep_validated));
    if (hit < kept) continue;
    mistakes.add(
        "faults[{}] ({}) is at the {}. checkpoint that can be damaged, and {} may be all there are: no system survives "
        "the loss of the last validated one; damage fewer, keep more (checkpoint.keep_validated), or let it come later",
        i, describe(fault), hit, kept);
    return;
  }
}

void check_delays(const std::vector<FaultSpec>& faults, const Job& job, Mistakes& mistakes) {
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const FaultSpec& fault = faults[i];
    const bool delays = fault.kind == FaultKind::slow_disk || fault.kind == FaultKind::slow_shard;
    if (!delays || slows_within_bound(fault, job)) continue;
    mistakes.add(
        "faults[{}] ({}) can hold a rank up for longer than its watchdog allows: {} in one call (cluster.deadline less "
        "cluster.heartbeat) and {} in one wait of its peers; give a smaller delay or fewer times, or a longer deadline",
        i, describe(fault), format_duration(job.cluster.deadline - job.cluster.heartbeat),
        format_duration(patience_in_deadlines * job.cluster.deadline));
  }
}

}  // namespace

bool slows_within_bound(const FaultSpec& fault, const Job& job) {
  constexpr int calls_in_a_wait = 64;  // a rank makes at most about so many slow calls while its peers wait for it
  const int times = fault.times == 0 ? calls_in_a_wait : std::min(fault.times, calls_in_a_wait);
  const Duration deadline = job.cluster.deadline;
  return fault.delay + job.cluster.heartbeat <= deadline && fault.delay < patience_in_deadlines * deadline / times;
}

std::optional<int> attempts_ended_at_most(const std::vector<FaultSpec>& faults, const Job& job) {
  int ended = 0;
  int failed_tries = 0;
  int failed_last_tries = 0;
  for (const FaultSpec& fault : faults) {
    if (only_fails_tries(fault)) {
      (can_hit_the_last_publish(fault, job) ? failed_last_tries : failed_tries) += tries_failed_by(fault, job);
      continue;
    }
    const std::optional<int> more = attempts_ended_by(fault, job);
    if (!more) return std::nullopt;
    ended += *more;
  }
  const bool goes_on = job.checkpoint.on_error == OnError::continue_training;
  const int failed_publishes_survived = goes_on ? job.checkpoint.failures_max : 0;
  failed_tries += failed_last_tries % tries_a_publish;
  return ended + failed_last_tries / tries_a_publish + failed_tries / tries_a_publish / (failed_publishes_survived + 1);
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
    if (!attempts_ended_by(fault, job)) {
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
  check_durability(faults, mistakes);
  check_rest(faults, job, mistakes);
  check_delays(faults, job, mistakes);
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

#include "harness/explore/crashcheck.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "faults/persistence/counter.h"
#include "harness/explore/record.h"
#include "harness/explore/sample.h"
#include "harness/explore/second_loss.h"

namespace firedrill {
namespace {

using Clock = std::chrono::steady_clock;

// What the explicit engine may be given: two minutes' work.
constexpr double explicit_states_max = 6e6;
constexpr double explicit_states_max_rocksdb = 3e4;

double seconds_since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

class Check {
 public:
  Check(const ExploreSubject& subject, const CrashSpec& spec, const CrashCheckOptions& options)
      : subject_(subject), spec_(spec), options_(options), began_(Clock::now()) {
    result_.torn = spec.torn;
    result_.complete = true;
  }

  Status add(const CrashCase& one);
  Status again_after(const CrashCase& one, const crash::CrashSpace& space);
  bool over() const { return options_.stop_at_first && result_.violations > 0; }
  CrashCheckResult finish() {
    result_.seconds = seconds_since(began_);
    return std::move(result_);
  }

 private:
  EngineKind engine_for(const crash::Count& states) const;
  void take(const Exploration& exploration, const crash::CrashSpace& space, const CheckSubject& subject);
  void sample(const crash::CrashSpace& space, const CheckSubject& subject, const ExploreOptions& explore);
  ExploreOptions explore_options(const CrashCase& one);

  const ExploreSubject& subject_;
  const CrashSpec& spec_;
  const CrashCheckOptions& options_;
  Clock::time_point began_;
  CrashCheckResult result_;
  std::vector<FirstLoss> leaves_;  // of the case in work, if the power fails twice
  std::mutex mutex_;
};

EngineKind Check::engine_for(const crash::Count& states) const {
  if (options_.engine) return *options_.engine;
  const bool rocksdb = subject_.plan().job.checkpoint.catalog == CatalogKind::rocksdb;
  // A mutant is caught at its first bad state, which the lazy engine meets first.
  if (options_.stop_at_first) return EngineKind::lazy;
  return states.to_double() <= (rocksdb ? explicit_states_max_rocksdb : explicit_states_max)
             ? EngineKind::explicit_states
             : EngineKind::lazy;
}

ExploreOptions Check::explore_options(const CrashCase& one) {
  ExploreOptions explore{.jobs = options_.jobs,
                         .keep_digests = options_.keep_digests,
                         .required = one.required,
                         .stop_at_first = options_.stop_at_first};
  explore.give_up =
      began_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.seconds_max));
  if (options_.progress) {
    explore.progress = [this](std::uint64_t runs) { options_.progress(fmt::format("{} states", runs)); };
  }
  return explore;
}

void Check::take(const Exploration& exploration, const crash::CrashSpace& space, const CheckSubject& subject) {
  result_.covered += exploration.covered;
  result_.checked += exploration.restored;
  result_.fresh += exploration.fresh;
  result_.runs += exploration.runs;
  if (exploration.violations > 0 && result_.violations == 0) {
    result_.first_violation = seconds_since(began_);
    result_.story = tell_shortest(space, subject, exploration.findings);
  }
  result_.violations += exploration.violations;
}

Status Check::add(const CrashCase& one) {
  crash::SpaceOptions space_options{.profile = {.kind = options_.profile, .torn = spec_.torn}, .certain = one.certain};
  // Without the rule that both names change together every content that has it is legal too, and what is owed is no
  // less: so this covers a rename that is atomic and one that is not.
  space_options.profile.atomic_rename = false;
  FD_TRY(const std::unique_ptr<crash::CrashSpace> space, crash::CrashSpace::build(one.trace, space_options));
  const CheckSubject subject = subject_.to_check(one.attempts + 1);
  ++result_.cases;
  result_.operations += one.trace.operations.size() - one.certain.size();
  crash::Counter counter(*space);
  const crash::Count legal = counter.count_all();
  result_.legal += legal;
  const EngineKind engine = engine_for(legal);
  if (result_.cases == 1 || engine == EngineKind::lazy) result_.engine = engine;
  ExploreOptions explore = explore_options(one);
  leaves_.clear();
  if (spec_.twice) {
    explore.on_leaf = [this](crash::Partial& leaf, const CheckAnswer&) {
      const std::scoped_lock lock(mutex_);
      leaves_.push_back(FirstLoss::of(leaf));
    };
  }
  if (options_.stop_at_first) {
    // A wrong protocol mostly shows itself at the loss of one thing; to walk all states may take long.
    const Sampling first = sample_states(*space, subject, explore, {.seconds = 2, .losses_max = 1, .random = false});
    if (first.exploration.violations > 0) take(first.exploration, *space, subject);
    if (over()) {
      result_.complete = false;
      return {};
    }
  }
  const bool lazily = engine == EngineKind::lazy || spec_.twice;
  const Exploration exploration =
      lazily ? explore_lazily(*space, subject, explore) : explore_explicitly(*space, subject, explore);
  take(exploration, *space, subject);
  if (over()) {
    result_.complete = false;
    return {};
  }
  if (!exploration.complete) {
    result_.complete = false;
    sample(*space, subject, explore);
    return {};
  }
  if (exploration.covered != legal) {
    return Error{
        .code = Code::internal,
        .message = fmt::format("the {} engine covered {} states, {} were counted", to_string(exploration.engine),
                               exploration.covered.to_string(), legal.to_string())};
  }
  return spec_.twice ? again_after(one, *space) : Status();
}

Status Check::again_after(const CrashCase& one, const crash::CrashSpace& space) {
  const std::vector<FirstLoss> leaves = std::move(leaves_);
  leaves_.clear();
  CrashSpec once = spec_;
  once.twice = false;
  Check inner(subject_, once, options_);
  inner.began_ = began_;
  for (const FirstLoss& leaf : leaves) {
    FD_TRY(CrashCase second, recovery_after(space, subject_.to_check(one.attempts + 1), leaf));
    if (one.required && (!second.required || *second.required < *one.required)) second.required = one.required;
    FD_TRY_VOID(inner.add(second));
    if (inner.over()) break;
  }
  CrashCheckResult more = inner.finish();
  result_.cases += more.cases;
  result_.operations += more.operations;
  result_.legal += more.legal;
  result_.covered += more.covered;
  result_.checked += more.checked;
  result_.fresh += more.fresh;
  result_.runs += more.runs;
  if (result_.violations == 0) {
    result_.first_violation = more.first_violation;
    result_.story = std::move(more.story);
  }
  result_.violations += more.violations;
  result_.complete = result_.complete && more.complete;
  for (std::string& note : more.notes) result_.notes.push_back(std::move(note));
  return {};
}

void Check::sample(const crash::CrashSpace& space, const CheckSubject& subject, const ExploreOptions& explore) {
  const Sampling sampling = sample_states(space, subject, explore, {.seed = options_.seed});
  take(sampling.exploration, space, subject);
  result_.notes.push_back(sampling.words);
}

// The newest checkpoint that these operations acknowledged.
std::optional<CheckpointId> acknowledged_in(const crash::Trace& trace, const std::vector<crash::OperationId>& these) {
  std::optional<CheckpointId> newest;
  for (const crash::OperationId id : these) {
    const crash::Operation& operation = trace.operations[id];
    if (operation.kind != crash::OperationKind::acknowledged) continue;
    if (!newest || *newest < operation.checkpoint) newest = operation.checkpoint;
  }
  return newest;
}

}  // namespace

Result<std::vector<CrashCase>> cases_of(const ExploreSubject& subject, const CrashSpec& spec,
                                        const std::optional<crash::Trace>& kept,
                                        const std::function<void(std::string_view)>& progress) {
  std::vector<CrashCase> cases;
  const auto attempts_in = [](const crash::Trace& trace) {
    int attempts = 1;
    for (const crash::Program& program : trace.programs) attempts = std::max(attempts, program.attempt);
    return attempts;
  };
  RecordedRun run;
  if (kept) {
    run.trace = *kept;
  } else {
    if (progress) progress("recording the run");
    FD_TRY(run, record_run(subject, subject.plan()));
    if (!run.finished && subject.plan().mutant.empty()) {
      return Error{.code = Code::unavailable, .message = "the run to look at did not finish: " + run.why};
    }
  }
  if (!spec.kill_everywhere) {
    CrashCase one{.trace = std::move(run.trace), .certain = {}};
    one.attempts = attempts_in(one.trace);
    one.certain = operations_before(one.trace, spec.attempt, spec.step);
    if (spec.settled) {
      one.required = acknowledged_in(one.trace, one.certain);
      one.trace = settled(one.trace, one.certain);
      one.certain.clear();
    }
    cases.push_back(std::move(one));
    return cases;
  }
  for (const FaultSpec& kill : kills_behind_each(run.trace, spec.attempt, spec.step)) {
    if (progress) progress(fmt::format("recording the run with {}", describe(kill)));
    Plan plan = subject.plan();
    plan.faults.push_back(kill);
    FD_TRY(RecordedRun killed, record_run(subject, plan));
    if (killed.attempts <= spec.attempt) continue;  // it came too late to kill anything
    CrashCase one{.trace = std::move(killed.trace), .certain = {}, .attempts = killed.attempts};
    one.certain = operations_before(one.trace, spec.attempt + 1, 0);
    cases.push_back(std::move(one));
  }
  return cases;
}

Result<CrashCheckResult> crashcheck(const ExploreSubject& subject, const CrashSpec& spec,
                                    const std::vector<CrashCase>& cases, const CrashCheckOptions& options) {
  Check check(subject, spec, options);
  for (const CrashCase& one : cases) {
    FD_TRY_VOID(check.add(one));
    if (check.over()) break;
  }
  return check.finish();
}

}  // namespace firedrill

#include "harness/explore/crashcheck.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "faults/persistence/counter.h"
#include "harness/explore/sample.h"
#include "harness/explore/second_loss.h"

namespace firedrill {
namespace {

using Steady = std::chrono::steady_clock;

// What the explicit engine may be given: two minutes' work.
constexpr double explicit_states_max = 6e6;
constexpr double explicit_states_max_rocksdb = 3e4;

void merge(CrashCheckResult& all, CrashCheckResult more) {
  if (all.cases == 0 || more.engine == EngineKind::lazy) all.engine = more.engine;
  all.cases += more.cases;
  all.operations += more.operations;
  all.legal += more.legal;
  all.covered += more.covered;
  all.checked += more.checked;
  all.fresh += more.fresh;
  all.runs += more.runs;
  const auto length = [](const CrashCheckResult& result) {
    return std::pair(result.story->operations.size(), result.story->losses);
  };
  if (more.story && (!all.story || length(more) < length(all))) all.story = std::move(more.story);
  if (more.violations > 0 && (all.violations == 0 || more.first_violation < all.first_violation)) {
    all.first_violation = more.first_violation;
  }
  all.violations += more.violations;
  all.complete = all.complete && more.complete;
  all.torn = more.torn;
  for (std::string& note : more.notes) all.notes.push_back(std::move(note));
}

Result<CrashCheckResult> check_cases(const ExploreSubject& subject, const CrashSpec& spec,
                                     const std::vector<CrashCase>& cases, const CrashCheckOptions& options,
                                     Steady::time_point began);

double seconds_since(Steady::time_point began) { return std::chrono::duration<double>(Steady::now() - began).count(); }

class Check {
 public:
  Check(const ExploreSubject& subject, const CrashSpec& spec, const CrashCheckOptions& options,
        Steady::time_point began)
      : subject_(subject), spec_(spec), options_(options), began_(began) {
    result_.torn = spec.torn;
    result_.complete = true;
  }

  Status add(const CrashCase& one);
  Status again_after(const CrashCase& one, const crash::CrashSpace& space);
  bool over() const { return options_.stop_at_first && result_.violations > 0; }
  CrashCheckResult finish() { return std::move(result_); }

 private:
  EngineKind engine_for(const crash::Count& states) const;
  void take(const Exploration& exploration, const crash::CrashSpace& space, const CheckSubject& subject);
  void sample(const crash::CrashSpace& space, const CheckSubject& subject, const ExploreOptions& explore);
  ExploreOptions explore_options(const CrashCase& one);

  const ExploreSubject& subject_;
  const CrashSpec& spec_;
  const CrashCheckOptions& options_;
  Steady::time_point began_;
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
      began_ + std::chrono::duration_cast<Steady::duration>(std::chrono::duration<double>(options_.seconds_max));
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
  crash::SpaceOptions space_options{
      .profile = {.kind = options_.profile, .node_caches = spec_.node_caches, .torn = spec_.torn},
      .certain = one.certain};
  // Without the rule that both names change together every content that has it is legal too, and what is owed is no
  // less: so this covers a rename that is atomic and one that is not.
  space_options.profile.atomic_rename = false;
  FD_TRY(const std::unique_ptr<crash::CrashSpace> space, crash::CrashSpace::build(one.trace, space_options));
  CheckSubject subject = subject_.to_check(one.attempts + 1);
  subject.unread = &one.unread;
  ++result_.cases;
  result_.operations += one.trace.operations.size() - one.certain.size();
  crash::Counter counter(*space);
  const crash::Count legal = counter.count_all();
  result_.legal += legal;
  const EngineKind engine = engine_for(legal);
  const bool lazily = engine == EngineKind::lazy || spec_.twice;
  result_.engine = lazily ? EngineKind::lazy : EngineKind::explicit_states;
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
    const double seconds = std::clamp(options_.seconds_max - seconds_since(began_), 0.0, 2.0);
    const Sampling first =
        sample_states(*space, subject, explore, {.seconds = seconds, .losses_max = 1, .random = false});
    if (first.exploration.violations > 0) take(first.exploration, *space, subject);
    if (over()) {
      result_.complete = false;
      return {};
    }
  }
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
  std::vector<CrashCase> seconds;
  for (const FirstLoss& leaf : leaves) {
    FD_TRY(CrashCase second, recovery_after(space, subject_.to_check(one.attempts + 1), leaf));
    if (one.required && (!second.required || *second.required < *one.required)) second.required = one.required;
    seconds.push_back(std::move(second));
  }
  CrashSpec once = spec_;
  once.twice = false;
  FD_TRY(CrashCheckResult more, check_cases(subject_, once, seconds, options_, began_));
  merge(result_, std::move(more));
  return {};
}

void Check::sample(const crash::CrashSpace& space, const CheckSubject& subject, const ExploreOptions& explore) {
  const Sampling sampling =
      sample_states(space, subject, explore, {.seed = options_.seed, .seconds = options_.sample_seconds});
  take(sampling.exploration, space, subject);
  result_.notes.push_back(sampling.words);
}

// Several cases are spread over the jobs; one case spreads its states.
Result<CrashCheckResult> check_cases(const ExploreSubject& subject, const CrashSpec& spec,
                                     const std::vector<CrashCase>& cases, const CrashCheckOptions& options,
                                     Steady::time_point began) {
  CrashCheckOptions each = options;
  const bool spread = options.jobs > 1 && cases.size() > 1;
  if (spread) each.jobs = 1;
  // Each has its share, so that many which were not done in time do not make a new time without end.
  each.sample_seconds /= static_cast<double>(std::max<std::size_t>(cases.size(), 1));
  std::vector<CrashCheckResult> results(cases.size());
  std::vector<Status> statuses(cases.size());
  std::vector<std::exception_ptr> thrown(cases.size());
  std::atomic<std::size_t> next{0};
  std::atomic<bool> over{false};
  const auto work = [&] {
    for (std::size_t i = next++; i < cases.size() && !over; i = next++) {
      try {
        Check check(subject, spec, each, began);
        statuses[i] = check.add(cases[i]);
        if (!statuses[i] || check.over()) over = true;
        results[i] = check.finish();
      } catch (...) {
        thrown[i] = std::current_exception();
        over = true;
      }
    }
  };
  std::vector<std::jthread> threads;
  for (int job = 1; spread && job < options.jobs; ++job) threads.emplace_back(work);
  work();
  threads.clear();
  CrashCheckResult all;
  all.complete = true;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (thrown[i]) std::rethrow_exception(thrown[i]);
    FD_TRY_VOID(std::move(statuses[i]));
    if (results[i].cases > 0) merge(all, std::move(results[i]));
  }
  all.complete = all.complete && !over;
  all.seconds = seconds_since(began);
  return all;
}

}  // namespace

Result<CrashCheckResult> crashcheck(const ExploreSubject& subject, const CrashSpec& spec,
                                    const std::vector<CrashCase>& cases, const CrashCheckOptions& options) {
  FD_TRY(CrashCheckResult result, check_cases(subject, spec, cases, options, Steady::now()));
  if (spec.node_caches && options.profile == crash::ProfileKind::posix) {
    result.notes.emplace_back("each node has a cache of its own: a sync covers what its own node did");
  }
  return result;
}

}  // namespace firedrill

#include "harness/explore/swarm/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <fstream>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "engine/base/check.h"
#include "engine/model/numerics.h"
#include "harness/explore/swarm/deck.h"
#include "harness/history/lines.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr double progress_every = 1;  // seconds
// Plans drawn ahead, to run those of a job and layout in a row: few in the beginning, so that a short exploration is no
// other than the start of a long one, and the corpus is soon asked.
constexpr std::uint64_t ahead_min = 64;
constexpr std::uint64_t ahead_max = 4'096;

double seconds_since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

// How many trials come before the first one of the shard.
std::uint64_t before_shard(const TrialsOptions& options) {
  const std::uint64_t at = options.first % options.shards;
  return options.shard >= at ? options.shard - at : options.shards - (at - options.shard);
}

// What the threads share.
class Together {
 public:
  Together(const TrialsOptions& options, bool in_sim, PlanCorpus* corpus,
           const std::function<void(const TrialsResult&)>& progress)
      : options_(options), in_sim_(in_sim), corpus_(corpus), progress_(progress) {
    if (corpus_ == nullptr) return;
    result_.coverage.load(corpus_->features());
    result_.corpus_plans = corpus_->plans().size();
  }

  bool is_enough() {
    if (options_.stop != nullptr && *options_.stop) stopped_ = true;
    if (options_.seconds && seconds_since(began_) >= *options_.seconds) stopped_ = true;
    return stopped_ || failed_;
  }

  // The numbers of the next trials to be drawn, which the caller then deals. None: it is enough.
  std::vector<std::uint64_t> next() {
    std::vector<std::uint64_t> numbers;
    if (is_enough()) return numbers;
    const std::lock_guard lock(mutex_);
    const std::uint64_t left = trials_of_shard(options_) - taken_;
    // A process gains nothing from a memo.
    const std::uint64_t most = in_sim_ ? std::min(ahead_max, ahead_min + taken_) : 1;
    const std::uint64_t count = std::min(left, most);
    for (std::uint64_t i = 0; i < count; ++i) {
      numbers.push_back(options_.first + before_shard(options_) + (taken_ + i) * options_.shards);
    }
    taken_ += count;
    if (count > 0) deck_.will_deal();
    return numbers;
  }

  Deck& deck() { return deck_; }
  const std::shared_ptr<PlacesOfGrounds>& places() const { return places_; }

  std::optional<Plan> parent_for(std::uint64_t trial) {
    if (corpus_ == nullptr || trial % mutated_every != 1) return std::nullopt;
    const std::lock_guard lock(mutex_);
    if (corpus_->plans().empty()) return std::nullopt;
    return corpus_->plans()[Rng(trial).below(corpus_->plans().size())];
  }

  // What one trial adds, and whether its failure is one of those to be kept.
  struct Part {
    const Drawn* drawn = nullptr;
    const Sighting* sighting = nullptr;
    int fired = 0;
    bool doubled = false;
    bool without_memo = false;
    bool gave_up = false;
    bool from_corpus = false;
    std::uint64_t rechecks = 0;
  };
  Status add(const Part& part) {
    const std::lock_guard lock(mutex_);
    ++result_.trials;
    result_.doubled += part.doubled;
    result_.without_memo += part.without_memo;
    result_.rechecked_hits += part.rechecks;
    result_.beyond_budget += part.drawn->beyond_budget;
    result_.gave_up += part.gave_up;
    result_.from_corpus += part.from_corpus;
    result_.planned += part.drawn->plan.faults.size();
    result_.fired += static_cast<std::uint64_t>(part.fired);
    if (part.sighting != nullptr && result_.coverage.add(*part.sighting) && corpus_ != nullptr) {
      FD_TRY_VOID(corpus_->keep(part.drawn->plan));
      Coverage of_this_one;  // all others are kept already
      of_this_one.add(*part.sighting);
      FD_TRY_VOID(corpus_->keep_features(of_this_one.features()));
      result_.corpus_plans = corpus_->plans().size();
    }
    if (progress_ && seconds_since(told_) >= progress_every) {
      told_ = Clock::now();
      result_.seconds = seconds_since(began_);
      progress_(result_);
    }
    return {};
  }

  bool wants_failure() {
    const std::lock_guard lock(mutex_);
    ++result_.failures;
    return result_.failures <= options_.failures_max;
  }
  void keep(TrialFailure failure) {
    const std::lock_guard lock(mutex_);
    result_.kept.push_back(std::move(failure));
  }
  void fail(Error error) {
    const std::lock_guard lock(mutex_);
    if (!failed_) error_ = std::move(error);
    failed_ = true;
  }
  void began_with(std::set<Reach> reachable, std::size_t variants, std::string numerics) {
    const std::lock_guard lock(mutex_);
    result_.reachable = std::move(reachable);
    result_.variants = variants;
    result_.numerics_key = std::move(numerics);
  }

  Result<TrialsResult> end() {
    if (failed_) return std::move(error_);
    result_.seconds = seconds_since(began_);
    result_.stopped = stopped_;
    std::ranges::sort(result_.kept, {}, &TrialFailure::trial);
    return std::move(result_);
  }

 private:
  const TrialsOptions& options_;
  const bool in_sim_;
  PlanCorpus* corpus_;
  const std::function<void(const TrialsResult&)>& progress_;
  const std::shared_ptr<PlacesOfGrounds> places_ = std::make_shared<PlacesOfGrounds>();
  Clock::time_point began_ = Clock::now();
  Deck deck_{static_cast<std::size_t>(std::max(options_.jobs, 1))};
  std::atomic<bool> stopped_{false};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;  // of what follows, and of the corpus
  std::uint64_t taken_ = 0;
  Clock::time_point told_ = began_;
  TrialsResult result_;
  Error error_;
};

class Worker {
 public:
  Worker(const Plan& base, const TrialsOptions& options, Together& together, std::size_t thread)
      : options_(options),
        together_(together),
        thread_(thread),
        swarm_(base, options.swarm, together.places()),
        session_(options.session) {
    const KindWeights weights = weights_of(options.swarm.weights, base.world);
    std::set<Reach> all;
    for (const Job& job : swarm_.variants()) all.merge(reachable(weights, job.checkpoint.catalog));
    together_.began_with(std::move(all), swarm_.variants().size(), session_.numerics_key(base.job));
  }

  // Draws and runs until it is enough.
  Status run();

 private:
  Result<PlannedTrial> plan_for(std::uint64_t number);
  // Draws these and deals them.
  Status draw(const std::vector<std::uint64_t>& numbers);
  Status run(const PlannedTrial& planned);
  std::optional<TrialFailure> judge(const Drawn& drawn, const Trial& trial, bool& gave_up) const;
  std::optional<TrialFailure> repeat(const Plan& plan, const Trial& trial, Result<Trial> again, Trouble trouble);
  void keep(TrialFailure failure);
  Status keep_run(TrialFailure& failure);

  const TrialsOptions& options_;
  Together& together_;
  std::size_t thread_;
  Swarm swarm_;
  Session session_;
  std::string other_history_;  // of a repetition that differs
};

Result<PlannedTrial> Worker::plan_for(std::uint64_t number) {
  const std::uint64_t seed = number + swarm_.seed() * 0x9E3779B97F4A7C15ULL;
  const std::optional<Plan> parent = together_.parent_for(number);
  PlannedTrial planned{.number = number, .from_corpus = parent.has_value()};
  FD_TRY(planned.drawn, parent ? swarm_.mutate(session_, *parent, seed) : swarm_.draw(session_, seed));
  planned.ground = Swarm::ground_of(planned.drawn.plan);
  planned.layout = swarm_.layout_number(planned.drawn.plan);
  return planned;
}

std::optional<TrialFailure> Worker::judge(const Drawn& drawn, const Trial& trial, bool& gave_up) const {
  if (trial.verdict == RunVerdict::pass) return std::nullopt;
  TrialFailure failure{.verdict = trial.verdict,
                       .property = std::string(trial.property),
                       .evidence = trial.evidence,
                       .plan = drawn.plan};
  if (trial.check_failed) {
    failure.trouble = Trouble::broken;
    failure.verdict = RunVerdict::unknown;
    return failure;
  }
  if (!drawn.beyond_budget) return failure;
  gave_up = true;
  const std::optional<Judged> wrong = wrong_result(Case(session_.history(), drawn.plan));
  if (!wrong) return std::nullopt;
  failure.trouble = Trouble::wrong_result;
  failure.verdict = RunVerdict::fail;
  failure.property = wrong->property->name;
  failure.evidence = wrong->verdict.evidence;
  return failure;
}

std::optional<TrialFailure> Worker::repeat(const Plan& plan, const Trial& trial, Result<Trial> again, Trouble trouble) {
  TrialFailure failure{.trouble = trouble, .verdict = RunVerdict::unknown, .plan = plan};
  if (!again) {
    failure.trouble = Trouble::broken;
    failure.evidence = describe(again.error());
    return failure;
  }
  if (again->history == trial.history) return std::nullopt;
  failure.evidence = fmt::format("histories {} and {}", trial.history.hex(), again->history.hex());
  other_history_ = to_lines(session_.history());
  return failure;
}

Status Worker::draw(const std::vector<std::uint64_t>& numbers) {
  std::vector<PlannedTrial> drawn;
  Status status;
  for (const std::uint64_t number : numbers) {
    if (together_.is_enough()) break;
    Result<PlannedTrial> planned = plan_for(number);
    if (!planned) {
      status = std::move(planned).error();
      break;
    }
    drawn.push_back(*std::move(planned));
  }
  together_.deck().deal(std::move(drawn));
  return status;
}

// Those on the same ground ask the memo for the same results: in a row they find them in the caches of the CPU.
Status Worker::run() {
  for (;;) {
    std::vector<PlannedTrial> mine = together_.deck().take_own(thread_);
    if (mine.empty()) {
      if (const auto numbers = together_.next(); !numbers.empty()) {
        FD_TRY_VOID(draw(numbers));
        continue;
      }
      mine = together_.deck().take(thread_, [this] { return together_.is_enough(); });
      if (mine.empty()) return {};
    }
    for (const PlannedTrial& planned : mine) {
      if (together_.is_enough()) return {};
      FD_TRY_VOID(run(planned));
    }
  }
}

Status Worker::run(const PlannedTrial& planned) {
  const auto& [number, from_corpus, drawn, ground, layout] = planned;
  Together::Part part{.from_corpus = from_corpus};
  const std::uint64_t rechecks = session_.memo_counters().rechecks;
  const bool sim = drawn.plan.world == WorldKind::sim;
  part.drawn = &drawn;
  part.doubled = sim && number % doubled_every == doubled_every - 1;
  part.without_memo = sim && number % without_memo_every == without_memo_every - 2;
  const Result<Trial> trial = session_.trial(drawn.plan, part.doubled || part.without_memo);
  // A signal that ends the exploration ends the processes of a run, too: that run was not done.
  if (!trial && trial.error().code == Code::aborted && !sim && options_.stop != nullptr && *options_.stop) return {};
  std::optional<TrialFailure> failure;
  std::optional<Sighting> sighting;
  if (!trial) {
    failure = TrialFailure{.trouble = Trouble::broken, .evidence = describe(trial.error()), .plan = drawn.plan};
  } else {
    failure = judge(drawn, *trial, part.gave_up);
    part.fired = trial->faults_fired;
    sighting = sighting_of(Case(session_.history(), drawn.plan));
    part.sighting = &*sighting;
    if (part.doubled && !failure) {
      failure = repeat(drawn.plan, *trial, session_.trial(drawn.plan, true), Trouble::not_repeatable);
    }
    if (part.without_memo && !failure) {
      failure = repeat(drawn.plan, *trial, session_.trial_without_memo(drawn.plan), Trouble::memo_differs);
    }
  }
  part.rechecks = session_.memo_counters().rechecks - rechecks;
  if (failure && together_.wants_failure()) {
    failure->trial = number;
    failure->from_corpus = part.from_corpus;
    keep(*std::move(failure));
  }
  return together_.add(part);
}

void Worker::keep(TrialFailure failure) {
  if (!options_.failures.empty()) {
    failure.directory = options_.failures / fmt::format("{:06}", failure.trial);
    if (const Status kept = keep_run(failure); !kept) {
      failure.evidence += fmt::format(" (its run was not kept: {})", describe(kept.error()));
      failure.directory.clear();
    }
  }
  other_history_.clear();
  together_.keep(std::move(failure));
}

// By a session of its own: what this one holds may be what went wrong.
Status Worker::keep_run(TrialFailure& failure) {
  std::error_code failed;
  fs::create_directories(failure.directory, failed);  // writing says what is wrong
  if (!other_history_.empty()) std::ofstream(failure.directory / "other_history.jsonl") << other_history_;
  FD_TRY_VOID(write_plan(failure.plan, failure.directory / "plan.json"));
  Session fresh(options_.session);
  FD_TRY(RunReport run, fresh.run(failure.plan, {.directory = failure.directory}));
  run.reproduce = fmt::format("firedrill replay {}", failure.directory.string());
  if (failure.trouble != Trouble::failed) {
    run.verdict = failure.verdict;
    run.reason = fmt::format("{}: {}", to_string(failure.trouble), failure.evidence);
  }
  Report own;
  own.verb = "run";
  own.seed = run.seed;
  own.runs.push_back(run);
  conclude(own);
  std::ofstream(failure.directory / "report.json") << to_json(own);
  failure.run = std::move(run);
  return {};
}

void work(const Plan& base, const TrialsOptions& options, Together& together, std::size_t thread) {
  Worker worker(base, options, together, thread);
  if (Status ran = worker.run(); !ran) together.fail(std::move(ran).error());
}

}  // namespace

std::uint64_t trials_of_shard(const TrialsOptions& options) {
  const std::uint64_t before = before_shard(options);
  return options.trials <= before ? 0 : (options.trials - 1 - before) / options.shards + 1;
}

Result<TrialsResult> run_trials(const Plan& base, const TrialsOptions& options, PlanCorpus* corpus,
                                const std::function<void(const TrialsResult&)>& progress) {
  Together together(options, base.world == WorldKind::sim, corpus, progress);
  std::exception_ptr thrown;
  std::mutex mutex;
  std::vector<std::jthread> threads;
  for (int i = 0; i < std::max(options.jobs, 1); ++i) {
    threads.emplace_back([&, i] {
      try {
        pin_numerics();  // a part of the pins is kept per thread
        work(base, options, together, static_cast<std::size_t>(i));
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!thrown) thrown = std::current_exception();
        together.fail({.code = Code::internal, .message = "a trial threw"});
      }
    });
  }
  threads.clear();  // joins
  if (thrown) std::rethrow_exception(thrown);
  return together.end();
}

}  // namespace firedrill

// Trials: runs many drawn plans on some threads, each with a Session of its own, judges each, and adds up what was
// seen.
//
// Trial i of a seed has the same plan whatever the number of threads, unless it comes from the corpus: there what an
// earlier trial reached decides. A failure is always shown again by its plan, which is kept.
//
// One trial in 20 is run twice and must give the same history; one memo hit in 10,000 is computed again; one trial in
// 10,000 is run once more without the memo and must give the same history. A difference is an error of the harness.
//
// Threads: run_trials() starts and joins its own; `progress` is called by any of them, one at a time. Errors: of the
// corpus, and what a session says of the job.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/explore/swarm/coverage.h"
#include "harness/explore/swarm/plan_corpus.h"
#include "harness/explore/swarm/swarm.h"

namespace firedrill {

inline constexpr std::uint64_t doubled_every = 20;
inline constexpr std::uint64_t without_memo_every = 10'000;
// One trial in so many, if the corpus has a plan by the time the plan is drawn: some before it is run.
inline constexpr std::uint64_t mutated_every = 4;

struct TrialsOptions {
  std::uint64_t trials = 1'000;
  std::uint64_t first = 0;  // the number of the first trial
  std::uint64_t shard = 0;  // of `shards`: only trials with this remainder
  std::uint64_t shards = 1;
  std::optional<double> seconds = {};  // then no further trial is begun
  int jobs = 1;
  SwarmOptions swarm = {};
  SessionOptions session = {};
  std::filesystem::path failures = {};  // a folder for each failure's run; empty: only its plan is known
  std::size_t failures_max = 10;        // of which so much is kept; then it goes on counting
  const std::atomic<bool>* stop = nullptr;
};

enum class Trouble : std::uint8_t {
  failed,          // a property, or the job never ended
  wrong_result,    // a plan beyond its budget ended in a wrong state, or with a partial checkpoint
  not_repeatable,  // the same plan gave another history
  memo_differs,    // without the memo it gave another history
  broken,          // one of our own checks failed, or the run could not be made
};
std::string_view to_string(Trouble trouble);

struct TrialFailure {
  std::uint64_t trial = 0;
  Trouble trouble = Trouble::failed;
  RunVerdict verdict = RunVerdict::unknown;
  std::string property;
  std::string evidence;
  bool from_corpus = false;
  Plan plan;
  std::filesystem::path directory;  // its run; empty: not kept
  std::optional<RunReport> run;     // of the directory
};

struct TrialsResult {
  std::uint64_t trials = 0;
  std::uint64_t doubled = 0;
  std::uint64_t without_memo = 0;
  std::uint64_t rechecked_hits = 0;
  std::uint64_t beyond_budget = 0;  // plans
  std::uint64_t gave_up = 0;        // of these, in words
  std::uint64_t from_corpus = 0;
  std::uint64_t planned = 0;  // faults
  std::uint64_t fired = 0;
  std::uint64_t failures = 0;
  std::vector<TrialFailure> kept;  // the first of them
  std::set<Reach> reachable;
  Coverage coverage;
  std::size_t variants = 0;
  std::size_t corpus_plans = 0;
  double seconds = 0.0;
  bool stopped = false;  // before all trials were run
  std::string numerics_key;

  double rate() const { return seconds > 0 ? static_cast<double>(trials) / seconds : 0.0; }
};

// `corpus` may be absent. `progress` is told now and then, some times a second at most.
Result<TrialsResult> run_trials(const Plan& base, const TrialsOptions& options, PlanCorpus* corpus,
                                const std::function<void(const TrialsResult&)>& progress);

// How many of the trials are in the shard of the options.
std::uint64_t trials_of_shard(const TrialsOptions& options);

// What even a plan beyond its budget must never end with: a state that is not the golden's, or a partial checkpoint
// that discovery takes for whole.
std::optional<Judged> wrong_result(const Case& run);

}  // namespace firedrill

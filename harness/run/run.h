// Run: one plan to one verdict. A Session keeps what many runs share (goldens, corpora, models, memo, probe answers),
// so that a trial that repeats what an earlier one computed costs look-ups.
//
// Threads: a Session belongs to one thread. Errors: bad input (a corpus that is not there) and what the worlds say.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/base/result.h"
#include "engine/sim/memo.h"
#include "faults/census.h"
#include "harness/check/properties.h"
#include "harness/golden/golden.h"
#include "harness/plan/plan.h"
#include "harness/report/report.h"

namespace firedrill {

struct SessionOptions {
  // Where recorded goldens are looked up; empty: they are always recorded anew.
  std::filesystem::path golden_directory = {};
  // Where goldens that no one has recorded are kept for the next session, as files of the golden format; it must belong
  // to this build alone. Empty: they are computed by each session.
  std::filesystem::path golden_cache = {};
  bool memo = true;
  std::size_t memo_bytes = sim::MemoOptions().bytes_max;  // per generation
  std::size_t words_max = std::size_t{1} << 18;           // names, states and answers of probes kept between runs
  bool probes = true;  // off: only what really happens is judged, not what would be found at each moment (sim world)
  // Tells what is being done ("recording the golden of nano", "attempt 2"). May be empty.
  std::function<void(std::string_view)> progress = {};
  // Told each event of Session::run: in the process world as it comes, in the sim world when its attempt has ended. May
  // be empty.
  std::function<void(const History&, const Event&)> watch = {};
};

struct RunOptions {
  // Where plan.json, history.jsonl, report.json and, in the process world, the checkpoints go. Made by the caller,
  // empty. Without it nothing is kept.
  std::optional<std::filesystem::path> directory = {};
};

// What a trial gives, without words: for explorations and benchmarks.
struct Trial {
  RunVerdict verdict = RunVerdict::unknown;
  std::string_view property;  // the first that failed or is unknown; empty if none
  std::string evidence;       // of that property
  int faults_fired = 0;
  bool check_failed = false;  // one of our own checks, in the engine or in the world
  Digest history;             // only if asked for
};

class Session {
 public:
  explicit Session(SessionOptions options);
  ~Session();

  // Runs the plan in its world, judges and reports it.
  Result<RunReport> run(const Plan& plan, const RunOptions& options = {});
  // The same in the sim world, without a report.
  Result<Trial> trial(const Plan& plan, bool with_digest = false);
  // The same without the memo, with the digest of the history.
  Result<Trial> trial_without_memo(const Plan& plan);
  // What the runs of this session took from the memo so far.
  const sim::MemoCounters& memo_counters() const;
  // The calls of a run of the plan in the sim world: without faults, those of an undisturbed one; with a fault that
  // ends its first attempt, those of the second one too. Not judged; a run that does not get to its end is an error.
  Result<Census> census(const Plan& plan);
  // The history of the last run or trial.
  const History& history() const;

  // Recorded, cached or computed now; `note` says which if that matters to a person.
  Result<const Golden*> golden(const Job& job, std::string* note = nullptr);
  Result<Golden> record(const Job& job);
  // The golden of a job whose bits depend on the layout (collectives: native): of an undisturbed run of the plan's
  // layout in the plan's world.
  Result<Golden> record_in_layout(const Plan& plan);
  const std::string& numerics_key(const Job& job);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The account of a run of the plan; empty where the plan does not ask for one.
Accounting account_of(const History& history, const Plan& plan);

// "reproduce" line of a plan: the command that gives the same history.
std::string reproduce_line(const Plan& plan);

}  // namespace firedrill

// Report: what a run or a verb found, as data, and its writers: text for people, JSON (schema firedrill.report/1) and
// JUnit XML for machines. The runner fills a RunReport; a verb gathers them in a Report.
//
// Threads: pure functions. Errors: none; writing to files is the caller's.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/history/accounting.h"
#include "harness/report/metrics.h"

namespace firedrill {

enum class RunVerdict : std::uint8_t {
  pass,
  fail,      // a property failed
  liveness,  // the run did not converge
  unknown,   // it could not be judged
  refused,   // it was not run
};
std::string_view to_string(RunVerdict verdict);
// 0 pass, 1 refused, 2 fail, 3 liveness, 4 unknown.
int exit_code_of(RunVerdict verdict);

struct PropertyLine {
  std::string name;
  std::string verdict;  // "pass", "fail" or "unknown"
  std::int64_t checked = 0;
  std::string evidence;
};

struct PlannedFault {
  std::string fault;  // in words
  bool may_not_fire = false;
};

struct FiredFault {
  std::string fault;  // in words
  int attempt = 0;
  int rank = 0;
  std::int64_t step = 0;
  std::string phase;
};

struct AttemptLine {
  int attempt = 0;
  std::int64_t floor = -1;        // highest acknowledged step it was started with; -1: none
  std::string began;              // "from step 0", "from step 4 (4-1-1)", "never" ...
  std::vector<std::string> what;  // what happened, in order: "kill rank 2 at step 3, backward", "acknowledged step 4"
  std::string ended;              // "rank 2 died", "job finished"
};

struct DifferenceLine {
  std::string tensor;
  std::int64_t step = 0;
};

// Which links a kind of group needs.
struct PlacementLine {
  std::string group;  // "tp"
  int ranks = 1;      // of one group
  int nodes = 1;      // that one lies on
  std::string words;  // "tp: 8 ranks, inside a node (100GB/s)"
};

// Who is to blame for a failed attempt, where the layout's guard was on.
struct AttributionLine {
  int attempt = 0;
  std::string kind;  // "mismatch", "dead", "missing", "link"
  std::vector<int> ranks;
  std::string stream;         // "dp[0-3]"
  std::int64_t sequence = 0;  // of the call in it; -1: none
  std::int64_t step = 0;
  std::string phase;
  std::string call;                                         // "all_reduce f32 sum grad"
  std::string what;                                         // with mismatch: what differs
  std::vector<std::pair<int, std::string>> last_completed;  // by rank
  std::string text;                                         // all of it in a line
};

struct RunReport {
  std::string scenario;  // path as given, or the plan's name
  std::string world;     // "sim" or "process"
  std::string layout;    // "dp=4"
  std::uint64_t seed = 1;
  std::string mutant;
  RunVerdict verdict = RunVerdict::unknown;  // what was found, whatever was expected
  std::string reason;                        // why it is not a pass, or what was refused
  std::string expected = "pass";             // "pass", "fail: one_provenance", "liveness", "refuse"
  std::string final_digest;                  // 32 hex digits; empty: the job did not end
  std::string golden_digest;
  std::string golden_note;  // "recorded now: none of this numerics key was there"
  std::optional<DifferenceLine> first_difference;
  std::vector<PlannedFault> planned;
  std::vector<FiredFault> fired;
  std::vector<PropertyLine> properties;
  std::vector<AttemptLine> attempts;
  Accounting accounting;  // empty: not asked for
  std::optional<Metrics> metrics;
  std::vector<AttributionLine> attribution;
  std::vector<PlacementLine> placement;
  std::vector<std::string> warnings;  // what works and yet costs time
  double seconds = 0.0;               // wall clock
  std::string directory;              // where the plan, history and checkpoints are; empty: not kept
  std::string reproduce;              // "firedrill run ... --seed 7"
};

// Whether the expectation is met. With a mutant nothing is expected, so only a pass is. Liveness is met only where no
// property is unknown.
bool met(const RunReport& run);
// 0 if met; else the code of the verdict, 2 for a pass where something else was expected, and 4 for an expected
// liveness with an unknown property.
int exit_code_of(const RunReport& run);

struct Environment {
  std::string version;
  std::string commit;
  std::string numerics_key;
  int cores = 0;
};

// A case of the verb's own in JUnit, where no run stands for it.
struct CaseLine {
  std::string name;
  std::string failure;  // empty: none
  std::string error;
  double seconds = 0.0;
};

struct Report {
  std::string verb;
  Environment environment;
  RunVerdict verdict = RunVerdict::pass;
  int exit_code = 0;
  std::uint64_t seed = 1;
  double duration = 0.0;  // seconds, wall clock
  std::vector<RunReport> runs;
  nlohmann::ordered_json more = nlohmann::ordered_json::object();  // fields that only this verb has
  std::vector<std::string> lines;                                  // what the verb says beside its runs
  std::vector<CaseLine> cases;                                     // empty: the verb as a whole is one
};

// Of several runs: the first of 1, 2, 3, 4 that applies, else 0.
int combined_exit_code(const std::vector<int>& codes);
RunVerdict verdict_of_exit_code(int code);
// Sets verdict and exit code from the runs.
void conclude(Report& report);

std::string to_text(const RunReport& run);
std::string to_text(const Report& report);
std::string to_json(const Report& report);
std::string to_junit(const Report& report);

}  // namespace firedrill

// Scenario: a job, how it lies on ranks, which faults disturb it and what is expected of it. One YAML file of 15 to 40
// lines (schema firedrill.scenario/1) that names its job, another YAML file (schema firedrill.job/1).
//
// Loading reports every mistake at once, each as "file:line:column: what is wrong, with the value, and the remedy".
// Paths in a file are relative to it; in the loaded values they are usable from the working directory.
//
// `set` changes values before they are read, with the same checks: "job.steps=8", "layout.dp=2", "recovery.budget=3".
// Threads: pure functions. Errors: mistakes, never exceptions. Nothing here decides when a fault fires or runs a job.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/job/job.h"
#include "engine/job/layout.h"
#include "faults/spec.h"

namespace firedrill {

enum class WorldKind : std::uint8_t { sim, process };
std::string_view to_string(WorldKind world);
std::optional<WorldKind> world_from(std::string_view name);

enum class RecoveryPolicy : std::uint8_t {
  restart,  // all ranks again, on the same nodes
  spare,    // a node that was lost is replaced by one of `spares` nodes; without one left the run gives up
  fewer,    // behind the first loss of a rank or node: fewer ranks, in `layout`, on the nodes that are left
};

// What passes between the end of an attempt and the start of the next: `initial`, then `factor` times as much each
// time, up to `max`.
struct BackoffSpec {
  std::chrono::nanoseconds initial{0};
  double factor = 2;
  std::chrono::nanoseconds max{60'000'000'000};
  bool operator==(const BackoffSpec&) const = default;
};

struct RecoverySpec {
  RecoveryPolicy policy = RecoveryPolicy::restart;
  int budget = 3;  // restarts; one more failed attempt ends the run
  // How the job lies on ranks after the first attempt, perhaps on fewer or more; absent: as before. With policy fewer:
  // only behind a loss.
  std::optional<Layout> layout = {};
  int spares = 0;
  BackoffSpec backoff = {};
  bool operator==(const RecoverySpec&) const = default;
};

struct Expectation {
  enum class Kind : std::uint8_t { pass, fail, liveness, refuse };
  Kind kind = Kind::pass;
  std::string property = {};  // of `fail`
  bool operator==(const Expectation&) const = default;
};
// "pass", "fail: one_provenance", "liveness", "refuse".
std::string to_string(const Expectation& expect);

// What `firedrill crashcheck` looks at: which operations of the run may be lost in a power failure, and how.
enum class CrashProfile : std::uint8_t { posix, ext4, nfs };
std::string_view to_string(CrashProfile profile);

struct CrashSpec {
  // The power fails at this step of this attempt at the earliest: all that happened before has happened. 0: any time.
  int attempt = 1;
  std::int64_t step = 0;
  // What happened before is on the disk, too; else what of it was not synced may still be lost.
  bool settled = false;
  CrashProfile profile = CrashProfile::posix;
  // posix: each node has a cache of its own, and a sync makes durable what its own node did; else all nodes share one.
  bool node_caches = false;
  bool torn = true;  // a write may also miss its first, its middle or its last sector alone
  // The first attempt from `step` on is killed behind each of its operations in turn, caches survive, the next attempt
  // recovers, and the power fails at any time.
  bool kill_everywhere = false;
  // After the power has failed a new attempt recovers, and the power fails again at any time of its recovery.
  bool twice = false;
  bool operator==(const CrashSpec&) const = default;
};

// One `path=value` of --set or of a scenario's own `set:`.
struct Setting {
  std::string path;   // "job.steps"
  std::string value;  // "8", as YAML
  bool operator==(const Setting&) const = default;
};

struct Scenario {
  std::string path;  // of the file, as it was given
  std::filesystem::path job_path;
  Job job;  // with the settings applied
  std::vector<Setting> job_settings;
  Layout layout;
  WorldKind world = WorldKind::sim;
  std::vector<FaultSpec> faults;
  RecoverySpec recovery;
  Expectation expect;
  std::optional<CrashSpec> crash;     // absent: crashcheck takes the defaults
  std::optional<std::uint64_t> seed;  // of the plan; absent: the caller's choice
  // With `expect: refuse`: why this scenario must not run. Empty: nothing refuses it. Otherwise always empty, since a
  // refusal is then a mistake.
  std::vector<std::string> refusals;

  std::string name() const { return std::filesystem::path(path).stem().string(); }
};

template <class T>
struct Loaded {
  std::optional<T> value;             // absent if there are mistakes
  std::vector<std::string> mistakes;  // "file:line:column: message"; in the order of the text
  explicit operator bool() const { return value.has_value(); }
  T& operator*() { return *value; }
  T* operator->() { return &*value; }
};

struct LoadOptions {
  std::vector<std::string> set;         // "path=value"
  std::vector<std::string> properties;  // names that `expect: {fail: ...}` may give; empty: not checked
  std::optional<WorldKind> world;       // in place of the scenario's own; faults are checked against it
  bool planned_only = false;            // a job that this engine cannot run is accepted too
};

Loaded<Scenario> load_scenario(const std::filesystem::path& file, const LoadOptions& options = {});
Loaded<Job> load_job(const std::filesystem::path& file, const LoadOptions& options = {});
// As above, from text that `file` would hold. `file` need not exist; a scenario's job must.
Loaded<Scenario> parse_scenario(std::string_view text, const std::filesystem::path& file,
                                const LoadOptions& options = {});
Loaded<Job> parse_job(std::string_view text, const std::filesystem::path& file, const LoadOptions& options = {});

// A layout as to_string(Layout) writes it: "dp=4,tp=2,zero=1,sequence_parallel". `origin` names it in mistakes. What is
// wrong with it for a job is not looked for.
Loaded<Layout> parse_layout(std::string_view text, const std::string& origin);

// Whether the file opens with `schema: firedrill.scenario/...`: what a search of directories picks up.
bool is_scenario_file(const std::filesystem::path& file);

// Canonical text: every field, in one order. `directory` is where the text will stand; paths are written relative to
// it. Parsing it there gives the same scenario.
std::string print(const Scenario& scenario, const std::filesystem::path& directory);
std::string print(const Job& job, const std::filesystem::path& directory);

}  // namespace firedrill

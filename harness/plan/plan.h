// Plan: a scenario and a seed with every choice made. After this no dice are rolled: a plan that is run again gives the
// same history (in the sim world byte for byte, in the process world in numbers and fault positions).
//
// On disk it is one JSON file (schema firedrill.plan/1) that says everything, without the files it was made from; only
// the corpus is named, by path and digest. Writing and reading is lossless.
// Threads: pure functions. Errors: invalid_input, not_found, io_error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/result.h"
#include "harness/scenario/scenario.h"

namespace firedrill {

struct Plan {
  std::string scenario;       // its name: the file's, without its ending
  std::string scenario_path;  // as the user gave it; empty if the plan came from elsewhere
  // "<job name>-<8 hex of the job's digest>": checkpoints carry it, and another seed must be able to read them.
  std::string run_id;
  Job job;
  Layout layout;
  WorldKind world = WorldKind::sim;
  std::vector<FaultSpec> faults;
  RecoverySpec recovery;
  Expectation expect;
  std::uint64_t seed = 1;               // of the scheduler
  std::string mutant;                   // a broken engine part to run with; empty: none
  bool accounting = false;              // time, bytes and waits go into the history; never changes what happens
  std::optional<Digest> corpus_digest;  // filled by the runner when it has read the corpus
  std::vector<std::string> settings;    // the --set arguments it was made with, for the reproduce line

  // With recovery policy restart.
  const Layout& layout_of(int attempt) const { return attempt > 1 && recovery.layout ? *recovery.layout : layout; }
  const Layout& layout_if(bool other) const { return other ? *recovery.layout : layout; }
};

struct PlanOptions {
  std::optional<std::uint64_t> seed;  // absent: the scenario's, else 1
  std::string mutant = {};
  std::vector<std::string> settings = {};
};

Plan make_plan(const Scenario& scenario, const PlanOptions& options = {});
// Of the job alone: every plan of a job has the same.
std::string run_id_of(const Job& job);

std::string to_json(const Plan& plan);
Result<Plan> plan_from_json(std::string_view text, const std::string& origin);

Status write_plan(const Plan& plan, const std::filesystem::path& file);
Result<Plan> read_plan(const std::filesystem::path& file);

}  // namespace firedrill

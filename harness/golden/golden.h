// Golden: the state digests of a job run without faults, per step and per tensor, and the samples of each step. Because
// every layout gives the same bits, one golden judges them all.
//
// It is keyed by job, corpus and numerics. A golden of another key is never compared: it is recorded anew, and the
// report says so. On disk: one JSON file per job and key (schema firedrill.golden/1), see golden/README.md.
//
// Errors: not_found, corrupted (a golden file that is not one), invalid_input, and what the recording run says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/result.h"
#include "engine/data/corpus.h"
#include "engine/job/job.h"
#include "engine/model/transformer.h"
#include "harness/history/history.h"

namespace firedrill {

struct GoldenKey {
  Digest job;
  Digest corpus;
  std::string numerics;
  bool operator==(const GoldenKey&) const = default;
};
std::string to_string(const GoldenKey& key);  // for people and file names: "job 1a2b3c4d, corpus ..., numerics ..."

struct GoldenSample {
  std::int64_t epoch = 0;
  std::int64_t sample = 0;
  std::int64_t lane = 0;
  bool operator==(const GoldenSample&) const = default;
};

struct GoldenStep {
  Digest state;                 // of all tensors, in name order
  std::vector<Digest> tensors;  // as Golden::tensors
  std::vector<Digest> runs;     // as Golden::runs
  std::vector<GoldenSample> samples;
  float loss = 0;
};

struct Golden {
  std::string job;
  GoldenKey key;
  std::vector<std::string> tensors;  // names, ascending
  // Runs of tensors, "w[64:128]": what a rank holds of a state that lies in flat shards. They follow from the tensors,
  // so no file holds them and no difference is told by them.
  std::vector<std::string> runs;
  std::vector<GoldenStep> steps;  // steps[i] is the state after step i + 1

  const Digest& final_state() const { return steps.back().state; }
};

// The digest of a whole state from its tensors, which must be in name order.
Digest digest_of_tensors(const std::vector<std::string>& names, const std::vector<Digest>& digests);

// Runs the job undisturbed on one rank in the sim world, without the memo.
Result<Golden> record_golden(const Job& job, const Model& model, const Corpus& corpus, const std::string& numerics_key);

// Adds the runs of tensors to a golden that has none, by running the job once more with its state in shards. Errors:
// internal, if that run's tensors are not the golden's.
Status record_runs(Golden& golden, const Job& job, const Model& model, const Corpus& corpus);

// The first (step, tensor) in which two goldens of one key differ; nothing if they are equal.
struct GoldenDifference {
  std::int64_t step = 0;
  std::string tensor;
  std::string how;
};
std::optional<GoldenDifference> difference(const Golden& recorded, const Golden& computed);

// "<job>-<8 hex of the key>.json"
std::string golden_file_name(const std::string& job, const GoldenKey& key);
Status write_golden(const Golden& golden, const std::filesystem::path& file);
Result<Golden> read_golden(const std::filesystem::path& file);

// Writes the golden's states and samples into a history, as `golden` and `golden_sample` events.
void append_golden(const Golden& golden, History& history);

// What became of the job in a history: the digest of all tensors of the last step's final states, by the union over the
// ranks that reached it. Nothing if no rank finished.
std::optional<Digest> final_state_of(const History& history, std::int64_t last_step);

}  // namespace firedrill

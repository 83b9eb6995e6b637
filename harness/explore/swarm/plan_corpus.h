// PlanCorpus: plans that reached something new, and what was reached, in the run database (RocksDB). A later
// exploration opens it and goes on. What is written survives the process being killed at any time.
//
// Threads: the caller's lock. Only one process may have it open. Errors: io_error, corrupted (a plan that cannot be
// read), busy as io_error with a hint.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "harness/plan/plan.h"

namespace firedrill {

class PlanCorpus {
 public:
  // Makes the directory if it is not there.
  static Result<PlanCorpus> open(const std::filesystem::path& directory);
  PlanCorpus(PlanCorpus&&) noexcept;
  ~PlanCorpus();

  // In the order of their digests.
  const std::vector<Plan>& plans() const { return plans_; }
  const std::vector<std::string>& features() const { return features_; }
  // A plan that is there already is not kept twice.
  Status keep(const Plan& plan);
  Status keep_features(const std::vector<std::string>& features);

 private:
  struct Database;
  explicit PlanCorpus(std::unique_ptr<Database> database);
  Status load();

  std::unique_ptr<Database> database_;
  std::vector<Plan> plans_;
  std::vector<std::string> features_;
};

}  // namespace firedrill

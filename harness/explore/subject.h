// ExploreSubject: a plan made ready to be run and explored: corpus, model, identity and golden, made once.
//
// Threads: immutable once made; may be read by several. Errors: invalid_input, not_found (a corpus that is not there).
#pragma once

#include <filesystem>
#include <memory>

#include "engine/data/corpus.h"
#include "harness/explore/restore_check.h"
#include "harness/golden/golden.h"
#include "harness/plan/plan.h"
#include "harness/world/world.h"

namespace firedrill {

class ExploreSubject {
 public:
  // `golden_directory`: where recorded goldens lie; empty, or none of this key there: it is recorded now.
  static Result<std::unique_ptr<ExploreSubject>> make(const Plan& plan, const std::filesystem::path& golden_directory);

  const Plan& plan() const { return plan_; }
  const Golden& golden() const { return golden_; }
  const RunIdentity& identity() const { return identity_; }
  // For a world that runs `plan`: the subject's own, perhaps with other faults. Both must outlive it.
  Subject to_run(const Plan& plan) const;
  // For recoveries in attempt `attempt`.
  CheckSubject to_check(int attempt) const;

 private:
  ExploreSubject(Plan plan, Corpus corpus, CorpusSplit split, Sampler sampler);

  Plan plan_;
  Corpus corpus_;
  CorpusSplit split_;
  Model model_;
  Sampler sampler_;
  RunIdentity identity_;
  Golden golden_;
};

}  // namespace firedrill

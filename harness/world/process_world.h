// ProcessWorld: the ranks as real processes, TCP between them, a real directory as the disk. The composition root of
// the process world. Kills are real SIGKILLs; the supervisor (this object, in the parent) reaps every rank of an
// attempt before the attempt's result is given.
//
// Probes: after each attempt, when all its ranks are dead, the directory is exactly what "all processes die" leaves;
// the power_fails view is not offered. Errors: no process, socket or directory can be had.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "harness/world/probe.h"
#include "harness/world/world.h"

namespace firedrill {

struct ProcessOptions {
  // Checkpoints go to `directory`/disk. Empty: a temporary directory, removed at the end.
  std::filesystem::path directory = {};
  // Each event of a rank, or of the supervisor about a rank, as it comes: before it is in the history, and not yet in
  // the order of its time. May be empty.
  std::function<void(const Event&)> heard = {};
};

class ProcessWorld final : public World {
 public:
  // Starts the zygote. `subject`, `prober` and `history` must outlive the world.
  static Result<std::unique_ptr<ProcessWorld>> start(const Subject& subject, Prober& prober, History& history,
                                                     const ProcessOptions& options);
  ~ProcessWorld() override;

  Result<AttemptResult> run_attempt(const AttemptOrder& order) override;
  void probe() override;
  Observer& observer();

 private:
  struct Impl;
  explicit ProcessWorld(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The zygote's main: the hidden verb `__zygote` of the command line calls it, before anything else is done. It loads
// LibTorch, then forks a rank for each request, until the supervisor goes away. The makers give the parts of the plan's
// mutant (the right ones for an empty name).
int zygote_main(int argc, char** argv, const MutantParts& make);

}  // namespace firedrill

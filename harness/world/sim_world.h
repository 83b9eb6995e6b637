// SimWorld: the ranks as fibers of one thread, virtual time, disk and wire in memory. Same plan, same history, byte for
// byte. The composition root of the sim world: here the parts of a rank are put together, decorators included.
//
// Order of the decorators, from the rank inwards: accounting, digests of payloads, faults, costs, memo, the kernel. So
// a memo hit costs the same virtual time as a computation, and what a fault damages never enters the memo.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine/sim/digest_check.h"
#include "engine/sim/machine.h"
#include "engine/sim/memo.h"
#include "engine/train/device/job_compute.h"
#include "faults/census.h"
#include "faults/persistence/recorder.h"
#include "harness/history/recorder.h"
#include "harness/world/probe.h"
#include "harness/world/sim_watch.h"
#include "harness/world/store_views.h"
#include "harness/world/world.h"

namespace firedrill {

// What outlives a run and is worth keeping: stacks, tables, computed results.
struct SimResources {
  sim::FiberPool fibers;
  sim::Machine machine{fibers};
  sim::MemoTable memo;
  StoreViews stores;
};

struct SimOptions {
  bool memo = true;
  bool probes = true;         // off while a golden is recorded
  bool digest_check = false;  // every kernel's inputs are hashed again
  // Records what the ranks do to the disk, below the faults; none: nothing is put in between. It must have begun with
  // an empty disk, and outlive the world.
  crash::Recorder* recorder = nullptr;
  Census* census = nullptr;  // counts all calls of the ranks
};

class SimWorld final : public World {
 public:
  // Resets the machine. All arguments must outlive the world.
  SimWorld(SimResources& resources, const Subject& subject, Prober& prober, History& history,
           const SimOptions& options = {});
  ~SimWorld() override;

  Result<AttemptResult> run_attempt(const AttemptOrder& order) override;
  void probe() override;
  Observer& observer() { return recorder_; }

 private:
  class TaskBox;
  struct PublisherBox;
  class RankBox;

  void disk_changed(const sim::DiskChange& change);
  void probe_view(ProbeView view, const Event& place);
  // The index of the answer in the probe table.
  std::int64_t ask(ProbeView view);
  std::int64_t ask_by_manifests(ProbeView view);
  std::int64_t ask_by_records(ProbeView view);
  // Remembers where the ranks stand that die now, by a call of the task at `killer`.
  void note_deaths(const std::function<bool(int rank)>& dies, const Position& killer);
  void node_lost(int node, bool data, bool names, const Position& position);
  Duration backstop() const { return LivenessLimits::of(subject_.plan.job.cluster).backstop(); }
  AttemptResult conclude(sim::Attempt& attempt, const Status& ran);

  SimResources& resources_;
  // Whose checkpoints the attempt writes: the layout is part of it.
  const RunIdentity& identity_of(const AttemptOrder& order);

  const Subject& subject_;
  std::optional<RunIdentity> identity_of_restarts_;
  Prober& prober_;
  History& history_;
  SimOptions options_;
  HistoryRecorder recorder_;
  JobCompute direct_;
  sim::MemoCompute memo_;
  sim::DigestCheckCompute checked_;
  Compute& kernels_;                 // the outermost of these that the options ask for
  std::vector<NameId> fault_names_;  // by index in the plan
  std::vector<std::unique_ptr<RankBox>> ranks_;
  std::map<int, int> node_starts_;  // by node: how often this machine has started ranks
  // Of the attempt under way.
  std::unique_ptr<LivenessRules> liveness_;
  std::optional<SimWatch> watch_;
  std::map<int, int> exit_codes_;  // by rank, of those that left by themselves
  std::exception_ptr trouble_;     // of a probe
  struct ByRecords {
    Digest view;
    Digest content;  // of what counts of it
    bool decides = false;
    bool known = false;
  };
  ByRecords by_records_[probe_view_count];  // the last
};

}  // namespace firedrill

// Crew: the ranks of a layout training a job together in the sim world, without a memo, without checkpoints. For tests
// of what layouts must not change.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/comm/collectives_over_transport.h"
#include "engine/sim/machine.h"
#include "engine/train/lone_rank.h"
#include "engine/train/trainer.h"

namespace firedrill {

// A tensor, or the run of one that a rank holds.
struct HeldRun {
  std::string tensor;
  std::int64_t begin = 0;
  Value value;
};
// What all ranks hold together, by name_of.
using HeldRuns = std::map<std::string, HeldRun>;

struct CrewResult {
  std::vector<float> losses;      // of rank 0, by step
  std::vector<HeldRuns> held;     // by step
  std::vector<MemoryUse> memory;  // by rank, of the last step
};

class Crew {
 public:
  Crew(const Job& job, const Layout& layout, const Model& model, const Sampler& sampler, Value text)
      : job_(job), layout_(layout), model_(model), sampler_(sampler), text_(std::move(text)), machine_(fibers_) {
    machine_.reset({});
  }

  // Instead of a DirectCompute of its own for each rank.
  void compute_with(std::function<Compute&(int rank)> of_rank) { compute_of_rank_ = std::move(of_rank); }

  CrewResult run(int steps) {
    result_ = {};
    result_.losses.resize(static_cast<std::size_t>(steps));
    result_.held.resize(static_cast<std::size_t>(steps));
    result_.memory.resize(static_cast<std::size_t>(layout_.world_size()));
    const int world = layout_.world_size();
    sim::Attempt& attempt =
        machine_.start_attempt({.number = 1, .node_of_rank = std::vector<int>(static_cast<std::size_t>(world), 0)});
    for (int rank = 0; rank < world; ++rank) attempt.start(rank, [&, rank] { live(attempt, rank, steps); });
    const Status ended = attempt.run();
    for (int rank = 0; rank < world; ++rank) {
      if (attempt.end_of(rank) != sim::RankEnd::finished) throw std::runtime_error(attempt.thrown_by(rank));
    }
    if (!ended.ok()) throw std::runtime_error(describe(ended.error()));
    return result_;
  }

 private:
  static void must(const Status& status) {
    if (!status.ok()) throw std::runtime_error(describe(status.error()));
  }

  Status meet(sim::Seams& seams, int rank) {
    const Time deadline = seams.clock.now() + job_.cluster.deadline;
    FD_TRY_VOID(seams.store.set(std::to_string(rank), seams.transport.address()));
    std::vector<std::string> addresses;
    for (int peer = 0; peer < layout_.world_size(); ++peer) {
      FD_TRY(addresses.emplace_back(), seams.store.get(std::to_string(peer), deadline));
    }
    return seams.transport.connect(addresses, deadline);
  }

  void live(sim::Attempt& attempt, int rank, int steps) {
    sim::Seams seams = attempt.seams(rank);
    Position position{.attempt = 1, .rank = rank};
    SilentObserver observer;
    DirectCompute direct;
    Compute& compute = compute_of_rank_ ? compute_of_rank_(rank) : direct;
    TransportCollectives collectives(seams.transport, compute, position, observer);
    Parts parts{.files = seams.files,
                .transport = seams.transport,
                .collectives = collectives,
                .store = seams.store,
                .compute = compute,
                .clock = seams.clock,
                .host = seams.host,
                .observer = observer,
                .position = position};
    must(meet(seams, rank));
    Result<TrainingState> state =
        initial_state(compute, job_, model_, sampler_.start(), holdings_of(job_, layout_, model_, rank));
    if (!state.ok()) throw std::runtime_error(describe(state.error()));
    Trainer trainer(job_, layout_, model_, sampler_, text_, parts, *std::move(state));
    for (int step = 1; step <= steps; ++step) {
      position.step = step;
      const Result<StepReport> report = trainer.step();
      if (!report.ok()) throw std::runtime_error(describe(report.error()));
      if (rank == 0) result_.losses[static_cast<std::size_t>(step - 1)] = report->loss;
      collect(trainer.view(), step);
      result_.memory[static_cast<std::size_t>(rank)] = trainer.memory();
    }
  }

  // Two ranks that hold a run hold the same, or this throws.
  void collect(const StateView& view, int step) {
    HeldRuns& held = result_.held[static_cast<std::size_t>(step - 1)];
    for (const StateGroup& group : view) {
      for (const TensorSlot& tensor : group.tensors) {
        const std::string name = name_of(tensor);
        const Value value = group.value.slice(tensor.offset, tensor.count());
        const auto [place, fresh] =
            held.try_emplace(name, HeldRun{.tensor = tensor.name, .begin = tensor.begin, .value = value});
        if (!fresh && place->second.value.digest() != value.digest()) {
          throw std::runtime_error("replicas differ in " + name);
        }
      }
    }
  }

  const Job& job_;
  Layout layout_;
  const Model& model_;
  const Sampler& sampler_;
  Value text_;
  std::function<Compute&(int rank)> compute_of_rank_;
  CrewResult result_;
  sim::FiberPool fibers_{{.stack_size = 1 << 20}};
  sim::Machine machine_;
};

}  // namespace firedrill

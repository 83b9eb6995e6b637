// LoneRank: one rank with all lanes of a job, hosted in the sim world without a memo. For tests and benchmarks of the
// trainer.
#pragma once

#include <functional>
#include <memory>

#include "engine/comm/collectives_over_transport.h"
#include "engine/seam/silent_observer.h"
#include "engine/sim/machine.h"
#include "engine/train/trainer.h"

namespace firedrill {

class LoneRank {
 public:
  LoneRank(const Job& job, const Model& model, const Sampler& sampler, Value text)
      : job_(job), model_(model), sampler_(sampler), text_(std::move(text)), machine_(fibers_) {
    machine_.reset({});
  }

  // Calls `body` as the rank, with a trainer at step 0 and the compute seam.
  void run(const std::function<void(Trainer&, Compute&)>& body) {
    sim::Attempt& attempt = machine_.start_attempt({.number = 1, .node_of_rank = {0}});
    attempt.start(0, [&] {
      sim::Seams seams = attempt.seams(0);
      TransportCollectives collectives(seams.transport, compute_, position_, observer_);
      Parts parts{.files = seams.files,
                  .transport = seams.transport,
                  .collectives = collectives,
                  .store = seams.store,
                  .compute = compute_,
                  .clock = seams.clock,
                  .host = seams.host,
                  .observer = observer_,
                  .position = position_};
      Result<TrainingState> state =
          initial_state(compute_, job_, model_, sampler_.start(), holdings_of(job_, layout_, model_, 0));
      FD_CHECK(state.ok(), "{}", describe(state.error()));
      Trainer trainer(job_, layout_, model_, sampler_, text_, parts, *std::move(state));
      body(trainer, compute_);
    });
    const Status ended = attempt.run();
    FD_CHECK(ended.ok(), "{}", describe(ended.error()));
    FD_CHECK(attempt.end_of(0) == sim::RankEnd::finished, "{}", attempt.thrown_by(0));
  }

 private:
  const Job& job_;
  const Model& model_;
  const Sampler& sampler_;
  Value text_;
  Layout layout_;
  Position position_;
  SilentObserver observer_;
  DirectCompute compute_;
  sim::FiberPool fibers_{{.stack_size = 1 << 20}};
  sim::Machine machine_;
};

}  // namespace firedrill

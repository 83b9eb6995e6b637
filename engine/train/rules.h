// TrainingRules: the decisions of a step that every rank must take alike, and that real systems have got wrong. Each is
// one function with the right answer; a mutant overrides one of them.
//
// Rules have no state of their own. Threads: called from the rank's tasks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/train/holdings.h"

namespace firedrill {

class TrainingRules {
 public:
  virtual ~TrainingRules() = default;

  // The dp lane whose samples a rank draws for its own lane `lane`; -1: it draws none.
  virtual int lane_drawn(const Holdings& /*holdings*/, int lane) const { return lane; }

  // Whether lanes draw what an epoch has left for its last batch, where that fills no whole one.
  virtual bool draws_short_batch() const { return true; }
  // Whether a rank that was told to leave still runs this micro-batch of the step's window: it saves whole steps only.
  virtual bool completes_window(int /*micro_batch*/, bool /*leaving*/) const { return true; }
  // Whether a rank whose rows were read wrong goes on without its part of the step.
  virtual bool skips_bad_rows() const { return false; }

  // Whether a rank leaves its parameters as they are: gradients overflowed on some rank, or on this one.
  virtual bool skips_update(bool overflow_anywhere, bool /*overflow_here*/) const { return overflow_anywhere; }

  // Whether a rank that holds the token weights of a tied model updates them.
  virtual bool updates_tied_weights(const Holdings& /*holdings*/) const { return true; }

  // Whether the norm of gradients that lie in shards is that of all shards, or of this rank's alone.
  virtual bool norm_spans_shards() const { return true; }

  // Whether an expert's gradients are added up with those of the other ranks that hold it. `expert`: its accumulators
  // on this rank for one dp lane; one that says yes is enough.
  virtual bool joins_reduction(std::span<const Value> /*expert*/) const { return true; }

  // Whether there is input for the step: all ranks leave the loop behind the same one.
  virtual bool input_left(const Holdings& /*holdings*/, std::int64_t step, std::int64_t steps) const {
    return step <= steps;
  }
  // In which order the shards of these gradients are exchanged: that of the model, on every rank.
  virtual void order_exchange(const Holdings& /*holdings*/, std::vector<std::size_t>& /*accumulators*/) const {}
  // Whether a rank of an attempt takes a message that was sent in another one.
  virtual bool takes_message(int attempt, int sent_in) const { return attempt == sent_in; }

  // Replicas that differ end the attempt.
  virtual bool ends_on_different_replicas() const { return true; }
  // They are compared before a snapshot is published, not behind it.
  virtual bool compares_replicas_before_saving() const { return true; }
  // A result that was computed twice is kept only if both are the same.
  virtual bool compares_reruns() const { return true; }
};

// The right ones.
const TrainingRules& right_rules();

}  // namespace firedrill

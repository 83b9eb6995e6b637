// Sampler: which sample every row of every batch is. All of it is a pure function of the job, the size of the training
// text and a small state that is saved; nothing is hidden, so a resume at any step draws what an undisturbed run drew.
//
// Sample i of N is the bytes [i * S, i * S + S + 1) for sequence length S: S inputs and, shifted by one, S targets. An
// epoch goes through a permutation of all samples (shuffle) or through them in order. A global batch has B = rows per
// lane micro-batch x accumulation x dp lanes positions. Position p belongs to micro-batch a, lane l and row r with
// p = a * (lanes * rows) + l * rows + r: each position has one owner, and the owner does not depend on the layout. So
// the uneven tail of an epoch is dealt like every other batch: by position in the epoch's one order.
#pragma once

#include <cstdint>

#include "engine/base/result.h"
#include "engine/base/value.h"
#include "engine/job/job.h"
#include "engine/seam/compute.h"

namespace firedrill {

// All three are part of the training state; the seed too, or a resume would have to trust that it is derived alike.
struct SamplerState {
  std::int64_t epoch = 0;
  std::int64_t cursor = 0;  // samples of this epoch that were consumed, padding not counted
  std::uint64_t epoch_seed = 0;
  bool operator==(const SamplerState&) const = default;
};

struct BatchShape {
  std::int64_t rows = 0;        // B
  std::int64_t valid_rows = 0;  // rows that hold a sample, in [1, B]; fewer than B only with last_batch: keep
  std::int64_t fresh_rows = 0;  // rows that hold a sample for the first time in this epoch: valid_rows without padding
};

class Sampler {
 public:
  // `training_bytes`: size of CorpusSplit::training. Errors: invalid_input if the text has no whole sample, or with
  // last_batch: drop no whole batch; the message names sizes and remedy.
  static Result<Sampler> make(const Job& job, std::int64_t training_bytes);

  std::int64_t samples() const { return samples_; }  // N
  std::int64_t rows() const { return rows_; }        // B
  std::int64_t batches_per_epoch() const { return batches_; }

  SamplerState start() const { return {.epoch = 0, .cursor = 0, .epoch_seed = epoch_seed(0)}; }
  BatchShape batch_at(const SamplerState& state) const;
  // The state after the batch at `state`; at the end of an epoch the first one of the next.
  SamplerState advance(const SamplerState& state) const;
  // i64 [lane_micro_batch]: the sample of each row of the dp lane's micro-batch, or -1 where there is none.
  Value rows_for(const SamplerState& state, int lane, int micro) const;
  // The sample at position `position` of the batch, or -1.
  std::int64_t sample_at(const SamplerState& state, std::int64_t position) const;

  std::uint64_t epoch_seed(std::int64_t epoch) const;

 private:
  Sampler(const Job& job, std::int64_t samples);

  std::int64_t samples_;
  std::int64_t rows_;
  std::int64_t batches_;
  std::int64_t lanes_;
  std::int64_t lane_rows_;
  std::uint64_t seed_;
  bool shuffle_;
  LastBatch last_batch_;
};

// Where element `index` of [0, count) goes in the permutation that `seed` names: a Feistel network on the next power of
// two, walked until it is back inside (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). O(1)
// for each index, a bijection for every seed.
std::int64_t permuted(std::int64_t index, std::int64_t count, std::uint64_t seed);

// Scalars of gather_kernel.
struct GatherScalars {
  std::int64_t sequence = 0;  // S
};

// Inputs: text u8 [bytes], samples i64 [rows] (-1: absent). Result: pack {tokens u8 [rows, S + 1], mask u8 [rows]};
// an absent row is zero in both. Errors: invalid_input (a sample outside of the text).
extern const Kernel gather_kernel;  // "data.gather"

}  // namespace firedrill

// AdamW with decoupled weight decay (Loshchilov & Hutter, "Decoupled weight decay regularization", ICLR 2019) as one
// kernel over a segment's flat Value, or over any run of it (a ZeRO shard): one pass of plain elementwise arithmetic.
//
// Only +, -, *, / and sqrt of IEEE floats, never contracted: the bits depend neither on the CPU nor on where a run
// begins or how it is aligned, nor on whether the update was done in place.
#pragma once

#include <cstdint>

#include "engine/base/result.h"
#include "engine/base/value.h"
#include "engine/job/job.h"
#include "engine/seam/compute.h"

namespace firedrill {

// One segment's (or one shard's) parameters and moments: f32, one dimension, all of one size. Gradients may have 16
// bits. The parameters of a 16-bit job are its masters here.
struct OptimizerState {
  Value parameters;
  Value exp_avg;
  Value exp_avg_sq;
};

struct AdamWStep {
  double lr = 0;
  std::int64_t step = 1;      // this update's number, from 1: the bias corrections follow from it
  double gradient_scale = 1;  // every gradient is multiplied by it: clip coefficient / loss scale
};

// The updated state. `state` is consumed: buffers that nobody else holds are updated in place.
// `decay_ranges`: Segment::decay_ranges, in elements of the whole segment; `offset`: where this run begins in it.
Result<OptimizerState> adamw_update(Compute& compute, const OptimizerSpec& spec, const AdamWStep& step,
                                    OptimizerState state, Value gradients, const Value& decay_ranges,
                                    std::int64_t offset = 0);

// Moments to start from: zeros like `parameters`.
Value zeros_like(const Value& parameters);
Value zeros_of(std::int64_t count);

}  // namespace firedrill

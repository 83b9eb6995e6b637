// The global gradient norm in an order that no layout changes: squares are summed over fixed grains of 64 elements, the
// grains of a segment by one fixed binary tree, the segments in their order.
//
// A sum that is not finite means that some gradient is not (or that a square overflowed): that is the overflow check of
// the loss scaler; no second pass over the gradients is needed.
#pragma once

#include <span>

#include "engine/base/result.h"
#include "engine/base/value.h"
#include "engine/seam/compute.h"

namespace firedrill {

// f32 [1]: the sum of squares of one segment's flat gradients (f32, or 16 bits that are widened first; one dimension).
Result<Value> sum_of_squares(Compute& compute, const Value& gradients);

// The same in two steps, for gradients that lie in shards: f32 [grains], the sums of squares of the grains of one run;
// and f32 [1] from those of all grains of the segment.
Result<Value> sums_of_grains(Compute& compute, const Value& gradients);
Result<Value> sum_over_grains(Compute& compute, const Value& sums);

// The root of the sum, in double, of one sum of squares per segment, in the model's order. Not finite if one of them is
// not.
double gradient_norm(std::span<const Value> sums_of_squares);

struct GradientDecision {
  bool overflow = false;      // skip the step
  double norm = 0;            // of the true gradients: the loss scale divided out
  double gradient_scale = 1;  // for AdamWStep: clip coefficient / loss scale
};

// `norm_scaled`: gradient_norm of gradients that still carry the loss scale. `clip` 0 is off.
GradientDecision decide_gradients(double norm_scaled, double loss_scale, double clip);

}  // namespace firedrill

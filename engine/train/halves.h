// Widening and rounding of 16-bit gradients and parameters, as kernels.
#pragma once

#include "engine/base/half.h"
#include "engine/seam/compute.h"

namespace firedrill {

// Input: a Value of bf16 or f16. Result: the same numbers as f32.
extern const Kernel widen_kernel;  // "train.widen"
// Input: an f32 Value; scalars: the DType to round to, as std::uint64_t.
extern const Kernel narrow_kernel;  // "train.narrow"

// Where `value` has 16 bits.
Status widen_in_place(Compute& compute, Value& value);
// Where there is a value and `dtype` has 16 bits.
Status narrow_in_place(Compute& compute, Value& value, DType dtype);

}  // namespace firedrill

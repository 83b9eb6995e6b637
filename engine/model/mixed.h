// How a kernel works with 16-bit parameters and activations (Micikevicius et al., "Mixed precision training", ICLR
// 2018). Inputs are widened, all arithmetic is fp32, and what leaves the kernel is rounded to 16 bits once. Within it
// what a matrix product reads is rounded to 16 bits first: a 16-bit product is the fp32 product of widened operands,
// and the elementwise work behind it happens before its result is rounded.
//
// Partial sums on their way through a tree over lanes stay fp32, so that a product that is cut over tp lanes is rounded
// once, too; and so do losses and the statistics of the softmax over the vocabulary.
#pragma once

#include "engine/base/half.h"
#include "engine/job/job.h"
#include "engine/seam/compute.h"

namespace firedrill {

inline DType dtype_of(Precision precision) {
  switch (precision) {
    case Precision::fp32: return DType::f32;
    case Precision::bf16: return DType::bf16;
    case Precision::fp16: return DType::f16;
  }
  return DType::f32;
}

// Before a matrix product reads them. `scalars`: any with a dtype.
template <class Scalars>
void round_operand(const Scalars& scalars, float* data, std::int64_t count) {
  round_to(static_cast<DType>(scalars.dtype), {data, static_cast<std::size_t>(count)});
}

// Which results of a kernel are rounded: bit i is for part i of a pack, bit 0 for a result that is none.
enum Narrowed : unsigned { none = 0, first = 1, second = 2, both = 3, third = 4 };

// The fp32 kernel `run` for any precision.
template <auto run, class Scalars, unsigned narrow>
Result<Value> in_precision(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto dtype = static_cast<DType>(scalars_as<Scalars>(scalars).dtype);
  if (dtype == DType::f32) return run(scalars, inputs);
  for (Value& input : inputs) input = widened(std::move(input));
  Result<Value> out = run(scalars, inputs);
  if (!out || narrow == 0) return out;
  if (!out->is_pack()) return narrowed(*out, dtype);
  std::vector<Value> parts;
  for (std::size_t i = 0; i < out->parts().size(); ++i) {
    parts.push_back((narrow >> i & 1U) != 0 ? narrowed((*out)[i], dtype) : (*out)[i]);
  }
  return Value::pack(parts);
}

}  // namespace firedrill

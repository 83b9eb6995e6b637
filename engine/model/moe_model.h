// MoeModel: the operations of a mixture of experts, one call per source lane or expert. Who runs which, and what moves
// between them, is not its business. See moe_kernels.h for the definitions and shapes.
//
// Threads: const; one call at a time per thread. Errors: what the compute seam says (dead).
#pragma once

#include "engine/job/job.h"
#include "engine/model/lane_shapes.h"
#include "engine/model/moe_kernels.h"
#include "engine/seam/compute.h"

namespace firedrill {

// Places of one expert for a source lane of so many tokens: capacity_factor * top_k * tokens / experts rounded up, and
// no more than there are tokens.
std::int64_t expert_capacity(const ModelSpec& model, std::int64_t tokens);

class MoeModel {
 public:
  MoeModel(const Job& job, Compute& compute);

  struct Routed {
    Value places;  // i32 [experts, capacity]
    Value gates;   // f32 [experts, capacity]
  };
  Result<Routed> route(const Value& parameters, const Value& h, const Value& mask) const;
  // `d_gates`: f32, experts * capacity. `factor`: of the loss, which the balance loss shares.
  Result<Value> route_backward(const Value& parameters, const Value& h, const Value& mask, Value d_gates,
                               float factor) const;
  Result<Value> dispatch(const Value& x, const Value& places) const;
  // `out`: a pack by expert. Without gates they count as 1.
  Result<Value> combine(const Value& places, const Value& gates, Value out) const;
  Result<Value> expert(const Value& parameters, Value x) const;
  Result<Value> expert_backward(const Value& parameters, Value x, Value gates, Value d_out) const;
  // The gates of one expert.
  Value gates_of(const Value& gates, int expert) const;

 private:
  LaneScalars lane_scalars() const;

  ModelSpec spec_;
  MoeScalars scalars_;
  std::uint32_t tp_lanes_;
  Compute& compute_;
};

}  // namespace firedrill

// LaneModel: the operations of a model that is cut into tp and cp lanes, one call per lane or chunk. Between them stand
// the exchanges, which are not its business: sums over tp lanes, the chunks of a cp lane, keys and values of all cp
// lanes. See lane_kernels.h for shapes and results.
//
// Threads: const; one call at a time per thread. Errors: what the compute seam says (dead).
#pragma once

#include <optional>
#include <vector>

#include "engine/model/lane_shapes.h"
#include "engine/model/transformer.h"

namespace firedrill {

// A (cp, tp) chunk of the sequence, or a (cp, tp) lane of the arithmetic.
struct LanePlace {
  int cp = 0;
  int tp = 0;
};

class LaneModel {
 public:
  LaneModel(const Job& job, const Model& model, Compute& compute);

  const Lanes& lanes() const { return lanes_; }

  // The embedding. `positions` adds the positions to the sum over tp lanes and drops out.
  Result<Value> tokens(LanePlace at, const Value& parameters, const Value& tokens) const;
  Result<Value> tokens_backward(LanePlace at, const Value& parameters, const Value& tokens, Value gradient) const;
  Result<Value> positions(LanePlace at, const Piece& piece, const Value& parameters, Value sum,
                          const RandomCounter& random) const;
  Result<Value> positions_backward(LanePlace at, const Piece& piece, const Value& parameters, Value gradient,
                                   const RandomCounter& random) const;

  Result<Value> norm(const Value& parameters, const Value& x) const;
  Result<Value> norm_backward(const Value& parameters, const Value& x, Value gradient, Value residual) const;
  Result<Value> residual(LanePlace at, const Piece& piece, const Value& x, Value sum,
                         const RandomCounter& random) const;
  // Without dropout this is the gradient itself.
  Result<Value> residual_backward(LanePlace at, const Piece& piece, const Value& gradient,
                                  const RandomCounter& random) const;

  Result<Value> qkv(LanePlace at, const Value& parameters, const Value& h) const;
  Result<Value> attend(LanePlace at, const Value& parameters, const Value& q, const Value& all_kv) const;
  Result<Value> attend_backward(LanePlace at, const Value& parameters, const Value& q, const Value& all_kv,
                                Value gradient) const;
  Result<Value> qkv_backward(LanePlace at, const Value& parameters, const Value& h, Value dq, Value d_kv,
                             Value d_parameters) const;
  Result<Value> mlp(const Value& parameters, const Value& h) const;
  Result<Value> mlp_backward(const Value& parameters, const Value& h, Value gradient) const;

  Result<Value> head_max(const Value& parameters, const Value& h) const;
  Result<Value> head_sums(LanePlace at, const Value& parameters, const Value& h, const Value& max,
                          const Value& tokens) const;
  Result<Value> head_loss(int cp_lane, const Value& max, const Value& sums, const Targets& targets) const;
  struct HeadState {
    Value max;
    Value sums;
  };
  Result<Value> head_backward(LanePlace at, const Value& parameters, const Value& h, const HeadState& state,
                              const Targets& targets, float factor) const;

  // All chunks of a cp lane, and one of them.
  Result<Value> join(std::vector<Value> chunks) const;
  Result<Value> take(const Value& whole, int chunk) const;

 private:
  LaneScalars scalars() const;
  LaneScalars scalars(LanePlace at) const;
  LaneScalars drawing(LanePlace at, const Piece& piece, const RandomCounter& random) const;

  const ModelSpec& spec_;
  const Model& model_;
  Lanes lanes_;
  DType dtype_;  // of parameters and activations
  Compute& compute_;
};

}  // namespace firedrill

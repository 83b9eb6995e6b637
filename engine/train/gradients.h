// GradientSums: the accumulators of one step, and the trees that make one gradient of them.
//
// A segment that all tp lanes share has an accumulator for each own dp lane and each own (cp, tp) chunk; a segment of
// one tp lane has one for each own dp and cp lane. In a job of one tp and one cp lane both are one for each dp lane.
#pragma once

#include <vector>

#include "engine/train/holdings.h"
#include "engine/train/network.h"

namespace firedrill {

struct StepSums {
  std::vector<Value> segments;  // over all lanes, by segment; empty where this rank does not hold it
  Value loss;                   // f32 [1], where the head is
};

class GradientSums {
 public:
  GradientSums(const Model& model, const Holdings& holdings, Compute& compute);

  // Adds behind what is there: calls for one accumulator come in the order of micro-batches. `slot`: index among the
  // own cp lanes, or among the own (cp, tp) chunks.
  Status add(std::size_t lane, std::size_t segment, std::size_t slot, Value gradient);
  Status add_loss(std::size_t lane, std::size_t slot, Value loss);

  // The sums over all lanes of the job. The accumulators are consumed.
  Result<StepSums> exchange(const NetworkContext& context);

 private:
  using Slots = std::vector<Value>;

  Status accumulate(Value& sum, Value more);
  bool shared(std::size_t segment) const;
  Status reduce_chunks(const NetworkContext& context);
  Status reduce_chunks_here(const NetworkContext& context);
  Status reduce_cp(const NetworkContext& context);
  Result<StepSums> reduce_dp(const NetworkContext& context);
  // Everything that is added over cp and dp lanes of own dp lane `lane`: the segments held in order, then the loss.
  std::vector<Slots*> of_lane(std::size_t lane);

  const Model& model_;
  const Holdings& holdings_;
  Compute& compute_;
  std::vector<std::vector<Slots>> sums_;  // by own dp lane, by segment of the model
  std::vector<Slots> losses_;             // by own dp lane
};

}  // namespace firedrill

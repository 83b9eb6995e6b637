// GradientSums: the accumulators of one step, and the trees that make one gradient of them.
//
// A segment that all tp lanes share has an accumulator for each own dp lane and each own (cp, tp) chunk; a segment of
// one tp lane, and a router, have one for each own dp and cp lane; a segment of an expert one for each dp and cp lane
// of the rank's ep group. In a job of one tp and one cp lane all are one for each dp lane. Tied weights have
// accumulators for each of their two uses (Model::accumulator); their totals are added last.
//
// A 16-bit gradient is kept as it is until a second one is added to it. Sums and trees are fp32, and the total is
// rounded to 16 bits once: it is what the norm and the optimizer read.
#pragma once

#include <boost/container/small_vector.hpp>
#include <memory>
#include <span>
#include <vector>

#include "engine/train/holdings.h"
#include "engine/train/memory_use.h"
#include "engine/train/network.h"

namespace firedrill {

struct StepSums {
  std::vector<Value> segments;  // over all lanes, by segment; empty where this rank does not hold it
  Value loss;                   // f32 [1], where the head is
};

class GradientSums {
 public:
  GradientSums(const Model& model, const Holdings& holdings, Compute& compute);

  // Adds behind what is there: calls for one accumulator come in the order of micro-batches. `lane`, `slot`: indices
  // among the own dp and cp lanes, or (dp lanes and) own (cp, tp) chunks; for experts among the ep group's lanes.
  Status add(std::size_t lane, std::size_t accumulator, std::size_t slot, Value gradient);
  Status add_loss(std::size_t lane, std::size_t slot, Value loss);

  // The accumulators of the piece's segments are complete: once enough bytes are (bucket_bytes of the layout) their
  // exchange over the dp group is started, and backward goes on meanwhile (Li et al., "PyTorch distributed: experiences
  // on accelerating data parallel training", VLDB 2020). Without buckets nothing happens before the end.
  Status complete(const NetworkContext& context, const Piece& piece, std::int64_t bucket_bytes);
  // The most bytes that accumulators and sums had so far.
  std::int64_t bytes_peak() const { return bytes_.peak(); }
  // The sums over all lanes of the job: exchanges what was not, the loss too, and waits for all that was started. With
  // sharded gradients the flat shard of this rank only.
  Result<StepSums> exchange(const NetworkContext& context);

 private:
  using Slots = boost::container::small_vector<Value, 2>;
  using SlotList = boost::container::small_vector<Slots*, 16>;

  Status accumulate(Value& sum, Value more);
  const Segment& segment_of(std::size_t accumulator) const { return model_.segments()[model_.segment_of(accumulator)]; }
  bool shared(std::size_t accumulator) const { return segment_of(accumulator).by_chunk(); }
  SegmentList accumulators_of(const Piece& piece) const;
  // What is exchanged together: among the same ranks, for the same number of dp lanes.
  struct Bucket {
    std::vector<std::size_t> accumulators = {};  // ascending
    bool loss = false;
    std::size_t lanes = 0;  // dp lanes on this rank
    const Group* cp = nullptr;
    const Group* dp = nullptr;
  };
  // As two buckets: those of experts lie on other ranks than the rest.
  Status start(const NetworkContext& context, const std::vector<std::size_t>& accumulators, bool loss, bool aside);
  std::int64_t bytes_in(const Bucket& bucket) const;
  // A bucket on its way: one exchange of all of it, or one for each accumulator and the loss.
  struct Started {
    Bucket bucket;
    std::vector<std::unique_ptr<PendingReduction>> parts;
    std::int64_t bytes = 0;  // of this rank's lanes
  };
  // `aside`: only begins the exchange over the dp group.
  Status start(const NetworkContext& context, Bucket bucket, bool aside);
  Status finish(Started& started);
  // The members of the dp group can have agreed about other sums than are due: mismatch.
  Status check_sums(const Bucket& bucket, std::span<const Value> sums) const;
  Status reduce_chunks(const NetworkContext& context, const Bucket& bucket);
  Status reduce_chunks_here(const NetworkContext& context, const Bucket& bucket);
  Status reduce_cp(const NetworkContext& context, const Bucket& bucket);
  Status reduce_dp(const NetworkContext& context, Started& started, bool aside);
  Status scatter_dp(const NetworkContext& context, Started& started, bool aside);
  // Trees are fp32.
  Status widen(const Bucket& bucket);
  // The total of tied weights, from those of their two uses.
  Status join_uses(const NetworkContext& context);
  // Everything of a bucket that is added over cp and dp lanes of own dp lane `lane`: the segments, then the loss.
  SlotList of_lane(std::size_t lane, const Bucket& bucket);

  const Model& model_;
  const Holdings& holdings_;
  Compute& compute_;
  std::vector<std::vector<Slots>> sums_;  // by dp lane, by accumulator
  std::vector<Slots> losses_;             // by own dp lane
  std::vector<std::size_t> waiting_;      // complete and not exchanged
  std::int64_t waiting_bytes_ = 0;
  std::vector<std::size_t> exchanged_;  // or about to be
  std::vector<Started> started_;        // in the order in which all ranks started them
  std::vector<Value> totals_;           // by accumulator
  Value loss_;
  HighWater bytes_;
};

}  // namespace firedrill

// Holdings: what one rank holds of a model under a layout, and who else holds the same. A pure function of job, layout
// and rank, so every rank knows it of all others.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <vector>

#include "engine/job/layout.h"
#include "engine/model/transformer.h"

namespace firedrill {

// A run of the model's pieces. Layers are dealt to stages in order, as evenly as whole layers allow; the embedding
// belongs to the first stage, the head to the last.
struct Stage {
  std::size_t begin = 0;  // pieces
  std::size_t end = 0;
};

// All stages of the pipeline in order.
std::vector<Stage> stages_of(const Model& model, int count);

// One of `count` ranks that hold the same; each saves its share of it.
struct Holder {
  int index = 0;
  int count = 1;
};

// Numbers of segments, few at a time.
using SegmentList = boost::container::small_vector<std::size_t, 8>;

struct Holdings {
  RankPlace place;
  std::vector<Stage> stages;  // of this rank, first to last
  bool first_stage = true;
  bool last_stage = true;
  std::vector<std::size_t> segments;  // those held, ascending
  int zero = 0;
  bool sixteen_bits = false;  // parameters are rounded from masters, which the optimizer keeps
  int dp_lanes = 1;           // of the job
  int tp_lanes = 1;
  Holder of_shared;  // segments that all tp lanes share
  Holder of_lane;    // segments of one tp lane
  Holder of_random;  // random counters of the rank's dp lanes
  // The same of flat shards, which differ between dp ranks.
  Holder of_shared_shard;
  Holder of_lane_shard;
  // Token weights that both ends of the pipeline hold, and their flat shards.
  Holder of_tied;
  Holder of_tied_shard;
  // Segments of experts, and their flat shards.
  Holder of_expert;
  Holder of_expert_shard;

  bool shards_moments() const { return zero >= 1; }
  // What the optimizer updates: with 16 bits the masters, else the parameters themselves.
  bool shards_masters() const { return zero >= 3 || (sixteen_bits && zero >= 1); }
  bool shards_gradients() const { return zero >= 2; }
  bool shards_parameters() const { return zero >= 3; }
  // The dp lanes whose flat shards of a segment this rank holds: its own, for experts those of its ep group.
  LaneRange shard_lanes(const Segment& segment) const {
    return segment.expert < 0 ? place.dp_lanes : place.expert_dp_lanes;
  }
  // The flat shard of a segment: the shards of these dp lanes, one behind the other.
  Range shard(const Segment& segment) const;
  // Who else holds a segment, whole or the same shard of it.
  const Holder& holder(const Segment& segment) const;
  const Holder& holder_of_shard(const Segment& segment) const;
  // Those of a piece that this rank holds.
  SegmentList segments_of(const Piece& piece) const;
  // One rank of those that draw a dp lane's samples: the one that tells the observer.
  bool speaks_for_lane() const { return first_stage && place.tp == 0 && place.cp == 0; }
};

Holdings holdings_of(const Job& job, const Layout& layout, const Model& model, int rank);

}  // namespace firedrill

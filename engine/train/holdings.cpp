#include "engine/train/holdings.h"

#include <algorithm>

#include "engine/job/pipeline.h"

namespace firedrill {

std::vector<Stage> stages_of(const Model& model, int count) {
  const std::size_t pieces = model.pieces().size();
  const int layers = static_cast<int>(pieces - 2) / 2;  // two pieces each, between embedding and head
  std::vector<Stage> stages;
  for (int i = 0; i < count; ++i) {
    const LayerRun run = layers_of_stage(layers, count, i);
    Stage stage{.begin = 1 + 2 * static_cast<std::size_t>(run.begin), .end = 1 + 2 * static_cast<std::size_t>(run.end)};
    if (i == 0) stage.begin = 0;
    if (i + 1 == count) stage.end = pieces;
    stages.push_back(stage);
  }
  return stages;
}

Range Holdings::shard(const Segment& segment) const {
  const LaneRange lanes = shard_lanes(segment);
  return {.begin = shard_range(segment.count, dp_lanes, lanes.begin).begin,
          .end = shard_range(segment.count, dp_lanes, lanes.end - 1).end};
}

const Holder& Holdings::holder(const Segment& segment) const {
  if (segment.expert >= 0) return of_expert;
  if (segment.tied) return of_tied;
  return segment.tp_lane < 0 ? of_shared : of_lane;
}

const Holder& Holdings::holder_of_shard(const Segment& segment) const {
  if (segment.expert >= 0) return of_expert_shard;
  if (segment.tied) return of_tied_shard;
  return segment.tp_lane < 0 ? of_shared_shard : of_lane_shard;
}

SegmentList Holdings::segments_of(const Piece& piece) const {
  SegmentList list = {piece.shared};
  if (piece.lanes == 0) return list;
  const auto add_lanes = [&](std::size_t first) {
    for (int lane = place.tp_lanes.begin; lane < place.tp_lanes.end; ++lane) {
      list.push_back(first + static_cast<std::size_t>(lane));
    }
  };
  if (piece.experts == 0) {
    add_lanes(piece.lanes);
    return list;
  }
  list.push_back(piece.router);
  for (int expert = place.experts.begin; expert < place.experts.end; ++expert) {
    add_lanes(piece.lanes + static_cast<std::size_t>(expert * tp_lanes));
  }
  return list;
}

Holdings holdings_of(const Job& job, const Layout& layout, const Model& model, int rank) {
  Holdings holdings;
  holdings.place = place_of(job, layout, rank);
  holdings.tp_lanes = job.lanes.tp;
  const RankPlace& place = holdings.place;
  const std::vector<Stage> stages = stages_of(model, layout.pp * layout.virtual_stages);
  for (std::size_t i = static_cast<std::size_t>(place.pp); i < stages.size();
       i += static_cast<std::size_t>(layout.pp)) {
    holdings.stages.push_back(stages[i]);
  }
  holdings.first_stage = place.pp == 0;
  holdings.last_stage = place.pp == layout.pp - 1;
  for (const Stage& stage : holdings.stages) {
    for (std::size_t i = stage.begin; i < stage.end; ++i) {
      for (const std::size_t segment : holdings.segments_of(model.pieces()[i])) holdings.segments.push_back(segment);
    }
  }
  // Tied weights come twice where one rank has both ends of the pipeline, and behind the others at its last end.
  std::ranges::sort(holdings.segments);
  holdings.segments.erase(std::ranges::unique(holdings.segments).begin(), holdings.segments.end());
  holdings.sixteen_bits = job.precision.parameters != Precision::fp32;
  holdings.zero = layout.zero;
  holdings.dp_lanes = job.lanes.dp;
  const int data = place.dp * layout.cp + place.cp;
  holdings.of_lane = {.index = data, .count = layout.dp * layout.cp};
  holdings.of_shared = {.index = data * layout.tp + place.tp, .count = layout.dp * layout.cp * layout.tp};
  holdings.of_random = {.index = (place.pp * layout.cp + place.cp) * layout.tp + place.tp,
                        .count = layout.pp * layout.cp * layout.tp};
  holdings.of_shared_shard = {.index = place.cp * layout.tp + place.tp, .count = layout.cp * layout.tp};
  holdings.of_lane_shard = {.index = place.cp, .count = layout.cp};
  const auto at_both_ends = [&](const Holder& at_one) {
    if (layout.pp == 1) return at_one;
    return Holder{.index = at_one.index + (holdings.last_stage ? at_one.count : 0), .count = 2 * at_one.count};
  };
  holdings.of_tied = at_both_ends(holdings.of_lane);
  holdings.of_tied_shard = at_both_ends(holdings.of_lane_shard);
  const ExpertBlock block = expert_block(layout);
  holdings.of_expert_shard = {.index = place.cp / block.cp, .count = layout.cp / block.cp};
  holdings.of_expert = {.index = place.dp / block.dp * holdings.of_expert_shard.count + holdings.of_expert_shard.index,
                        .count = layout.dp / block.dp * holdings.of_expert_shard.count};
  return holdings;
}

}  // namespace firedrill

#include "engine/job/tensors.h"

#include <initializer_list>

#include "engine/seam/collectives.h"  // grain

namespace firedrill {
namespace {

// Of the numbers of elements of its tensors.
SegmentSize segment_of(std::initializer_list<std::int64_t> tensors) {
  SegmentSize size;
  for (const std::int64_t elements : tensors) {
    size.parameters += elements;
    size.count += (elements + grain - 1) / grain * grain;
  }
  return size;
}

SegmentSize joined(SegmentSize a, const SegmentSize& b) {
  a.parameters += b.parameters;
  a.count += b.count;
  return a;
}

PieceSize lane_sizes(PieceRole role, const Job& job) {
  const ModelSpec& model = job.model;
  const std::int64_t lanes = job.lanes.tp;
  const std::int64_t width = model.width;
  const std::int64_t hidden = model.hidden_size() / lanes;
  const std::int64_t kv_width = width / model.heads * kv_heads_of(model);
  const SegmentSize norm = segment_of({width, width});
  switch (role) {
    case PieceRole::embed:
      return {.shared = segment_of({model.sequence * width}), .lane = segment_of({model.vocabulary / lanes * width})};
    case PieceRole::attention:
      return {.shared = norm, .lane = segment_of({(width + 2 * kv_width) / lanes * width, width * (width / lanes)})};
    case PieceRole::mlp: {
      const SegmentSize mlp = segment_of({2 * hidden * width, width * hidden});
      if (model.experts == 0) return {.shared = norm, .lane = mlp};
      return {.shared = norm, .router = segment_of({model.experts * width}), .expert = mlp};
    }
    case PieceRole::head: return {.shared = norm, .lane = segment_of({model.vocabulary / lanes * width})};
  }
  return {};
}

}  // namespace

bool runs_whole(const Job& job) {
  return job.lanes.tp == 1 && job.lanes.cp == 1 && job.model.experts == 0 && !job.model.tied_embedding;
}

PieceSize size_of(PieceRole role, const Job& job) {
  PieceSize size = lane_sizes(role, job);
  if (runs_whole(job)) {
    size.shared = joined(size.shared, size.lane);
    size.lane = {};
  }
  return size;
}

namespace {

std::int64_t count_with(const Job& job, std::int64_t experts) {
  const auto of = [&](PieceRole role) {
    const PieceSize size = size_of(role, job);
    const bool again = role == PieceRole::head && job.model.tied_embedding;
    return size.shared.parameters + size.router.parameters +
           job.lanes.tp * ((again ? 0 : size.lane.parameters) + experts * size.expert.parameters);
  };
  return of(PieceRole::embed) + of(PieceRole::head) +
         job.model.layers * (of(PieceRole::attention) + of(PieceRole::mlp));
}

}  // namespace

std::int64_t parameter_count(const Job& job) { return count_with(job, job.model.experts); }

std::int64_t active_parameter_count(const Job& job) {
  return count_with(job, job.model.experts == 0 ? 0 : job.model.top_k);
}

}  // namespace firedrill

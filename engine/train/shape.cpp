#include "engine/train/shape.h"

#include <utility>

namespace firedrill {

RankShape rank_shape_of(const Job& job, const Layout& layout, const Model& model, int rank) {
  RankShape shape{
      .groups = groups_of(job, layout, rank), .holdings = holdings_of(job, layout, model, rank), .view = {}};
  shape.view = blank_view(model, shape.holdings);
  shape.moments = initial_moments(model, shape.holdings);
  return shape;
}

LayoutShape layout_shape_of(const Job& job, const Layout& layout, const Model& model) {
  LayoutShape shape;
  for (int rank = 0; rank < layout.world_size(); ++rank) shape.ranks.push_back(rank_shape_of(job, layout, model, rank));
  shape.replicas = replica_table_of(job, layout, model);
  return shape;
}

}  // namespace firedrill

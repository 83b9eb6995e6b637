#include "engine/train/shape.h"

#include <utility>

namespace firedrill {

RankShape rank_shape_of(const Job& job, const Layout& layout, const Model& model, int rank) {
  RankShape shape{
      .groups = groups_of(job, layout, rank), .holdings = holdings_of(job, layout, model, rank), .view = {}};
  shape.view = blank_view(model, shape.holdings);
  return shape;
}

LayoutShape layout_shape_of(const Job& job, const Layout& layout, const Model& model) {
  LayoutShape shape;
  for (int rank = 0; rank < layout.world_size(); ++rank) {
    RankShape& of_rank = shape.ranks.emplace_back(rank_shape_of(job, layout, model, rank));
    of_rank.moments = initial_moments(model, of_rank.holdings);
  }
  shape.replicas = replica_table_of(job, layout, model);
  return shape;
}

}  // namespace firedrill

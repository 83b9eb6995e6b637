#include "engine/train/holdings.h"

#include <algorithm>

namespace firedrill {

std::vector<Stage> stages_of(const Model& model, int count) {
  const std::size_t pieces = model.pieces().size();
  const std::size_t layers = (pieces - 2) / 2;  // two pieces each, between embedding and head
  const auto number = static_cast<std::size_t>(count);
  std::vector<Stage> stages;
  for (std::size_t i = 0; i < number; ++i) {
    Stage stage{.begin = 1 + 2 * (layers * i / number), .end = 1 + 2 * (layers * (i + 1) / number)};
    if (i == 0) stage.begin = 0;
    if (i + 1 == number) stage.end = pieces;
    stages.push_back(stage);
  }
  return stages;
}

bool Holdings::holds(std::size_t segment) const {
  return std::binary_search(segments.begin(), segments.end(), segment);
}

Holdings holdings_of(const Job& job, const Layout& layout, const Model& model, int rank) {
  Holdings holdings;
  holdings.place = place_of(job, layout, rank);
  const RankPlace& place = holdings.place;
  holdings.stage = stages_of(model, layout.pp)[static_cast<std::size_t>(place.pp)];
  holdings.first_stage = place.pp == 0;
  holdings.last_stage = place.pp == layout.pp - 1;
  for (std::size_t i = holdings.stage.begin; i < holdings.stage.end; ++i) {
    const Piece& piece = model.pieces()[i];
    holdings.segments.push_back(piece.shared);
    if (piece.lanes == 0) continue;
    for (int lane = place.tp_lanes.begin; lane < place.tp_lanes.end; ++lane) {
      holdings.segments.push_back(piece.lanes + static_cast<std::size_t>(lane));
    }
  }
  const int data = place.dp * layout.cp + place.cp;
  holdings.of_lane = {.index = data, .count = layout.dp * layout.cp};
  holdings.of_shared = {.index = data * layout.tp + place.tp, .count = layout.dp * layout.cp * layout.tp};
  holdings.of_random = {.index = (place.pp * layout.cp + place.cp) * layout.tp + place.tp,
                        .count = layout.pp * layout.cp * layout.tp};
  return holdings;
}

}  // namespace firedrill

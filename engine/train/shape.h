// LayoutShape: what each rank of a layout is: its groups, what it holds, the list of its state, and who holds the same.
// It follows from job, layout and model alone, so whoever makes many attempts in one layout makes it once.
//
// Pure values. Errors: none.
#pragma once

#include <vector>

#include "engine/job/layout.h"
#include "engine/train/holdings.h"
#include "engine/train/replicas.h"
#include "engine/train/state.h"

namespace firedrill {

struct RankShape {
  Groups groups;
  Holdings holdings;
  StateView view;              // without values
  std::vector<Value> moments;  // before the first step, if several attempts share them
};
RankShape rank_shape_of(const Job& job, const Layout& layout, const Model& model, int rank);

struct LayoutShape {
  std::vector<RankShape> ranks;
  ReplicaTable replicas;
};
LayoutShape layout_shape_of(const Job& job, const Layout& layout, const Model& model);

}  // namespace firedrill

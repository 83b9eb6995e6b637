#include "engine/comm/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace firedrill {
namespace {

int root_level(int lanes) { return std::bit_width(static_cast<unsigned>(lanes - 1)); }

}  // namespace

LaneRange lanes_under(TreeNode node, int lanes) {
  return {.begin = std::min(node.index << node.level, lanes), .end = std::min((node.index + 1) << node.level, lanes)};
}

TreeNode highest_alike(TreeNode node, int lanes) {
  const int root = root_level(lanes);
  while (node.level < root && node.index % 2 == 0 && (node.index + 1) << node.level >= lanes) {
    node = {.level = node.level + 1, .index = node.index / 2};
  }
  return node;
}

std::vector<TreeNode> maximal_subtrees(LaneRange owned, int lanes) {
  std::vector<TreeNode> nodes;
  for (int lane = owned.begin; lane < owned.end; lane = lanes_under(nodes.back(), lanes).end) {
    TreeNode node = highest_alike({.level = 0, .index = lane}, lanes);
    while (node.level < root_level(lanes)) {
      const TreeNode parent = highest_alike({.level = node.level + 1, .index = node.index / 2}, lanes);
      const LaneRange covered = lanes_under(parent, lanes);
      if (covered.begin < owned.begin || covered.end > owned.end) break;
      node = parent;
    }
    nodes.push_back(node);
  }
  return nodes;
}

Status TreeReduction::add(TreeNode node, Value partial) {
  node = highest_alike(node, lanes_);
  // A right child whose left sibling is the newest partial can be joined with it, and the sum perhaps with the next.
  while (count_ > 0 && node.index % 2 == 1 && nodes_[count_ - 1].level == node.level &&
         nodes_[count_ - 1].index == node.index - 1) {
    Value inputs[2] = {std::move(partials_[count_ - 1]), std::move(partial)};
    FD_TRY(partial, compute_.run(kernel_of(op_), {}, inputs));
    node = highest_alike({.level = node.level + 1, .index = node.index / 2}, lanes_);
    --count_;
  }
  FD_CHECK(count_ < capacity, "{} partial results at once in a tree over {} lanes", count_ + 1, lanes_);
  nodes_[count_] = node;
  partials_[count_++] = std::move(partial);
  return {};
}

}  // namespace firedrill

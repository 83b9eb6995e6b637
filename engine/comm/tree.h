// The reduction tree over lanes (engine/seam/collectives.h) as pure functions, and the kernels that do its arithmetic.
//
// A node is (level, index) and covers lanes [index * 2^level, min((index + 1) * 2^level, lanes)). Adding partial sums
// in lane order and joining siblings as soon as both are there gives the tree's result, whoever computed the partials:
// a rank that owns lanes [a, b) joins what it can and is left with the maximal subtrees inside [a, b).
//
// The kernels work on f32 and i64 Values of any shape, and on packs of such, part by part. Sums of i64 wrap. The
// maximum or minimum with a NaN is NaN. Errors: mismatch, if the two inputs differ in type or shape.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/value.h"
#include "engine/seam/collectives.h"
#include "engine/seam/compute.h"

namespace firedrill {

struct TreeNode {
  int level = 0;
  int index = 0;
  bool operator==(const TreeNode&) const = default;
};

// The lanes a node covers, in a tree over `lanes` lanes.
LaneRange lanes_under(TreeNode node, int lanes);
// The highest node that covers the same lanes: a node without a sibling is its parent.
TreeNode highest_alike(TreeNode node, int lanes);
// The nodes whose lanes all lie in `owned` while their parent's do not, in lane order; each is its highest_alike.
std::vector<TreeNode> maximal_subtrees(LaneRange owned, int lanes);

// Takes partial results in lane order and joins siblings as they meet.
class TreeReduction {
 public:
  TreeReduction(Compute& compute, ReduceOp op, int lanes) : compute_(compute), op_(op), lanes_(lanes) {}
  Status add(TreeNode node, Value partial);
  std::size_t count() const { return count_; }
  // What is left: the maximal subtrees of the lanes that were added, in lane order.
  const Value& operator[](std::size_t i) const { return partials_[i]; }
  std::span<const Value> partials() const { return {partials_.data(), count_}; }
  Value take(std::size_t i) { return std::move(partials_[i]); }

 private:
  static constexpr std::size_t capacity = 48;  // two subtrees a level at most

  Compute& compute_;
  ReduceOp op_;
  int lanes_;
  std::size_t count_ = 0;
  std::array<TreeNode, capacity> nodes_;
  std::array<Value, capacity> partials_;
};

// Elementwise over two inputs, left first; in place where an input is held by nobody else.
extern const Kernel add_kernel;  // "comm.add"
extern const Kernel max_kernel;  // "comm.max"
extern const Kernel min_kernel;  // "comm.min"
const Kernel& kernel_of(ReduceOp op);

struct SliceScalars {
  std::int64_t begin = 0;  // in elements
  std::int64_t count = 0;
};
// Input: any buffer. Result: elements [begin, begin + count) as one dimension, sharing the buffer.
extern const Kernel slice_kernel;  // "comm.slice"
// Inputs: buffers of one type. Result: one after the other, as one dimension.
extern const Kernel concat_kernel;  // "comm.concat"

}  // namespace firedrill

#include "engine/comm/tree.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

namespace firedrill {
namespace {

Value floats(std::initializer_list<float> numbers) {
  return Value::copy_of(std::span<const float>(numbers.begin(), numbers.size()));
}

TEST(Tree, SubtreesOfUnevenLanesAreMaximal) {
  EXPECT_EQ(maximal_subtrees({.begin = 0, .end = 8}, 8), (std::vector<TreeNode>{{.level = 3, .index = 0}}));
  EXPECT_EQ(maximal_subtrees({.begin = 3, .end = 6}, 8),
            (std::vector<TreeNode>{{.level = 0, .index = 3}, {.level = 1, .index = 2}}));
  // Lane 4 of 5 has no sibling: it is the right half of the tree.
  EXPECT_EQ(maximal_subtrees({.begin = 2, .end = 5}, 5),
            (std::vector<TreeNode>{{.level = 1, .index = 1}, {.level = 2, .index = 1}}));
  EXPECT_EQ(maximal_subtrees({.begin = 0, .end = 5}, 5), (std::vector<TreeNode>{{.level = 3, .index = 0}}));
  EXPECT_EQ(maximal_subtrees({.begin = 0, .end = 1}, 1), (std::vector<TreeNode>{{.level = 0, .index = 0}}));
  EXPECT_TRUE(maximal_subtrees({.begin = 2, .end = 2}, 5).empty());
}

TEST(Tree, SubtreesCoverTheOwnedLanesOnceAndNoTwoCanBeJoined) {
  EXPECT_TRUE(rc::check([] {
    const int lanes = *rc::gen::inRange(1, 200);
    const int begin = *rc::gen::inRange(0, lanes);
    const int end = *rc::gen::inRange(begin, lanes + 1);
    int next = begin;
    const std::vector<TreeNode> nodes = maximal_subtrees({.begin = begin, .end = end}, lanes);
    for (const TreeNode& node : nodes) {
      RC_ASSERT(lanes_under(node, lanes).begin == next);
      RC_ASSERT(node == highest_alike(node, lanes));
      next = lanes_under(node, lanes).end;
    }
    RC_ASSERT(next == end);
    for (std::size_t i = 1; i < nodes.size(); ++i) {
      RC_ASSERT(!(nodes[i].level == nodes[i - 1].level && nodes[i].index % 2 == 1 &&
                  nodes[i].index == nodes[i - 1].index + 1));
    }
  }));
}

// Sums as text, so that the form of the tree can be read: every lane is one Value whose kernel writes "(left+right)".
class WritingCompute final : public Compute {
 public:
  Result<Value> run(const Kernel&, std::span<const std::byte>, std::span<Value> inputs) override {
    return Value::copy_of(fmt::format("({}+{})", inputs[0].text(), inputs[1].text()));
  }
};

TEST(Tree, ReductionLeavesExactlyTheMaximalSubtrees) {
  WritingCompute compute;
  TreeReduction reduction(compute, ReduceOp::sum, 7);
  for (int lane = 1; lane < 7; ++lane) {
    ASSERT_TRUE(reduction.add({.level = 0, .index = lane}, Value::copy_of(std::to_string(lane))));
  }
  ASSERT_EQ(reduction.count(), 3U);
  EXPECT_EQ(reduction[0].text(), "1");
  EXPECT_EQ(reduction[1].text(), "(2+3)");
  EXPECT_EQ(reduction[2].text(), "((4+5)+6)");
}

TEST(Tree, PartialsOfRanksJoinToTheSameTree) {
  WritingCompute compute;
  EXPECT_TRUE(rc::check([&compute] {
    const int lanes = *rc::gen::inRange(1, 40);
    TreeReduction direct(compute, ReduceOp::sum, lanes);
    for (int lane = 0; lane < lanes; ++lane) {
      RC_ASSERT(direct.add({.level = 0, .index = lane}, Value::copy_of(std::to_string(lane))).ok());
    }
    RC_ASSERT(direct.count() == 1U);
    TreeReduction total(compute, ReduceOp::sum, lanes);
    for (int begin = 0; begin < lanes;) {
      const int end = *rc::gen::inRange(begin + 1, lanes + 1);
      const LaneRange owned{.begin = begin, .end = end};
      TreeReduction own(compute, ReduceOp::sum, lanes);
      for (int lane = begin; lane < end; ++lane) {
        RC_ASSERT(own.add({.level = 0, .index = lane}, Value::copy_of(std::to_string(lane))).ok());
      }
      const std::vector<TreeNode> nodes = maximal_subtrees(owned, lanes);
      RC_ASSERT(own.count() == nodes.size());
      for (std::size_t i = 0; i < nodes.size(); ++i) RC_ASSERT(total.add(nodes[i], own.take(i)).ok());
      begin = end;
    }
    RC_ASSERT(total.count() == 1U);
    RC_ASSERT(total[0].text() == direct[0].text());
  }));
}

TEST(Kernels, AnInputNobodyElseHoldsIsUpdatedInPlace) {
  DirectCompute compute;
  for (const std::size_t lone : {0U, 1U}) {
    Value kept = floats({1, 2, 3});
    Value inputs[2] = {kept, kept};
    inputs[lone] = floats({10, 20, 30});
    const void* buffer = inputs[lone].bytes().data();
    const Result<Value> sum = compute.run(add_kernel, {}, inputs);
    ASSERT_TRUE(sum);
    EXPECT_TRUE(sum->same_as(floats({11, 22, 33})));
    EXPECT_EQ(sum->bytes().data(), buffer);
    EXPECT_TRUE(kept.same_as(floats({1, 2, 3})));
  }
}

TEST(Kernels, SharedInputsStayAsTheyAre) {
  DirectCompute compute;
  const Value a = floats({1, 2});
  const Value b = floats({5, 1});
  std::vector<Value> inputs = {a, b};
  const Result<Value> max = compute.run(max_kernel, {}, inputs);
  ASSERT_TRUE(max);
  EXPECT_TRUE(max->same_as(floats({5, 2})));
  EXPECT_TRUE(a.same_as(floats({1, 2})));
  EXPECT_TRUE(b.same_as(floats({5, 1})));
}

TEST(Kernels, InputsThatDifferAreAMismatch) {
  DirectCompute compute;
  const Value a = floats({1, 2});
  const Value integers = Value::copy_of(std::vector<std::int64_t>{1});
  const std::vector<std::vector<Value>> wrong = {{a, floats({1})},
                                                 {a, a.as_bytes()},
                                                 {a, Value()},
                                                 {a.as_bytes(), a.as_bytes()},
                                                 {a, Value::pack({a})},
                                                 {Value::pack({a}), Value::pack({integers})},
                                                 {Value::pack({a}), Value::pack({a, a})}};
  for (std::vector<Value> inputs : wrong) {
    EXPECT_TRUE(compute.run(add_kernel, {}, inputs).failed_with(Code::mismatch));
  }
}

TEST(Kernels, SlicesPutTogetherAreTheWhole) {
  DirectCompute compute;
  std::vector<float> numbers(300);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const Value whole = Value::copy_of(std::span(numbers));
  std::vector<Value> shards;
  for (int shard = 0; shard < 7; ++shard) {
    const Range range = shard_range(300, 7, shard);
    shards.push_back(
        *run_kernel(compute, slice_kernel, SliceScalars{.begin = range.begin, .count = range.count()}, {whole}));
  }
  const Result<Value> joined = compute.run(concat_kernel, {}, shards);
  ASSERT_TRUE(joined);
  EXPECT_TRUE(joined->same_as(whole));
}

}  // namespace
}  // namespace firedrill

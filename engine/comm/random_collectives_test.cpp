// Random sequences of collectives over random groups, against a model that knows the values of all members.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "engine/base/rng.h"
#include "engine/comm/guard.h"
#include "engine/comm/test_rank.h"

namespace firedrill {
namespace {

enum class Kind { all_reduce, reduce_scatter, started_reduce, all_gather, broadcast, all_to_all, barrier, send };
constexpr int kinds = 8;

struct Step {
  Kind kind = Kind::barrier;
  std::size_t group = 0;
  ReduceOp op = ReduceOp::sum;
  bool floats = true;
  std::int64_t count = 1;  // elements
  int root = 0;            // or the sender
  int peer = 0;
};

struct Story {
  int ranks = 1;
  std::vector<Group> groups;
  std::vector<Step> steps;
  std::size_t sharded_from = 0;
  Guard guard = Guard::off;
};

Group draw_group(int ranks, std::uint32_t id) {
  Group group{.id = id, .name = "group", .ranks = {}, .lanes = {}};
  for (int rank = 0; rank < ranks; ++rank) {
    if (*rc::gen::inRange(0, 3) > 0) group.ranks.push_back(rank);
  }
  if (group.ranks.empty()) group.ranks.push_back(*rc::gen::inRange(0, ranks));
  int lane = 0;
  for (int i = 0; i < group.size(); ++i) {
    const int count = *rc::gen::inRange(1, 4);
    group.lanes.push_back({.begin = lane, .end = lane + count});
    lane += count;
  }
  return group;
}

Story draw_story() {
  Story story{.ranks = *rc::gen::inRange(1, 6)};
  const int groups = *rc::gen::inRange(1, 4);
  for (int i = 0; i < groups; ++i) story.groups.push_back(draw_group(story.ranks, static_cast<std::uint32_t>(i)));
  const int steps = *rc::gen::inRange(1, 16);
  for (int i = 0; i < steps; ++i) {
    Step step{.kind = static_cast<Kind>(*rc::gen::inRange(0, kinds)),
              .group = static_cast<std::size_t>(*rc::gen::inRange(0, groups)),
              .op = static_cast<ReduceOp>(*rc::gen::inRange(0, 3)),
              .floats = *rc::gen::arbitrary<bool>(),
              .count = *rc::gen::inRange<std::int64_t>(0, 400)};
    const int members = story.groups[step.group].size();
    step.root = *rc::gen::inRange(0, members);
    step.peer = *rc::gen::inRange(0, members);
    story.steps.push_back(step);
  }
  story.sharded_from = *rc::gen::element(std::size_t{0}, std::size_t{600}, std::numeric_limits<std::size_t>::max());
  story.guard = *rc::gen::element(Guard::off, Guard::record, Guard::check);
  return story;
}

// What lane (or member) `owner` brings to the n-th step; `part` tells apart what it sends to several.
Value value_of(const Step& step, std::size_t n, int owner, int part = 0) {
  Rng rng(n * 1'000'003 + static_cast<std::size_t>(owner) * 1'009 + static_cast<std::size_t>(part) + 1);
  const auto count = static_cast<std::size_t>(step.count);
  if (step.floats) {
    std::vector<float> numbers(count);
    for (float& number : numbers) number = static_cast<float>(rng.below(1'000'000)) / 3.0F - 1e5F;
    return Value::copy_of(std::span<const float>(numbers));
  }
  std::vector<std::int64_t> numbers(count);
  for (std::int64_t& number : numbers) number = static_cast<std::int64_t>(rng.below(1'000'000)) - 500'000;
  return Value::copy_of(std::span<const std::int64_t>(numbers));
}

// The definition of the tree, and nothing of how it is computed: the left half of the lanes is the largest power of two
// that leaves a right one.
template <class Number>
Number under(const std::vector<std::span<const Number>>& lanes, std::size_t begin, std::size_t end, std::size_t at,
             ReduceOp op) {
  if (end - begin == 1) return lanes[begin][at];
  std::size_t half = 1;
  while (2 * half < end - begin) half *= 2;
  const Number left = under(lanes, begin, begin + half, at, op);
  const Number right = under(lanes, begin + half, end, at, op);
  if (op == ReduceOp::sum) return left + right;
  return op == ReduceOp::max ? std::max(left, right) : std::min(left, right);
}

template <class Number>
Value reduced(const std::vector<Value>& lanes, ReduceOp op) {
  std::vector<std::span<const Number>> all;
  for (const Value& lane : lanes) all.push_back(lane.as<Number>());
  std::vector<Number> result(all.front().size());
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = under(all, 0, all.size(), i, op);
  return Value::copy_of(std::span<const Number>(result));
}

// What member `me` must have after the n-th step; an empty Value where it gets nothing.
Value expected(const Story& story, std::size_t n, int me) {
  const Step& step = story.steps[n];
  const Group& group = story.groups[step.group];
  std::vector<Value> lanes;
  for (int lane = 0; lane < group.lane_count(); ++lane) lanes.push_back(value_of(step, n, lane));
  std::vector<Value> parts;
  switch (step.kind) {
    case Kind::all_reduce:
    case Kind::started_reduce:
    case Kind::reduce_scatter: {
      Value sum = step.floats ? reduced<float>(lanes, step.op) : reduced<std::int64_t>(lanes, step.op);
      if (step.kind != Kind::reduce_scatter) return sum;
      const Range shard = shard_range(step.count, group.size(), me);
      return sum.slice(shard.begin, shard.count());
    }
    case Kind::all_gather:
      for (int member = 0; member < group.size(); ++member) parts.push_back(value_of(step, n, member));
      return Value::pack(parts);
    case Kind::broadcast: return value_of(step, n, step.root);
    case Kind::all_to_all:
      for (int member = 0; member < group.size(); ++member) parts.push_back(value_of(step, n, member, me));
      return Value::pack(parts);
    case Kind::barrier: return {};
    case Kind::send: return me == step.peer && step.root != step.peer ? value_of(step, n, step.root) : Value();
  }
  return {};
}

Result<Value> perform(Collectives& collectives, const Group& group, const Step& step, std::size_t n) {
  const std::string purpose = "step." + std::to_string(n);
  const Call call{.purpose = purpose, .deadline = std::chrono::hours(1)};
  const LaneRange owned = group.lanes[static_cast<std::size_t>(group.me)];
  std::vector<Value> lanes;
  for (int lane = owned.begin; lane < owned.end; ++lane) lanes.push_back(value_of(step, n, lane));
  switch (step.kind) {
    case Kind::all_reduce: return collectives.all_reduce(group, lanes, step.op, call);
    case Kind::reduce_scatter: return collectives.reduce_scatter(group, lanes, step.op, call);
    case Kind::started_reduce: {
      FD_TRY(const auto started, collectives.start_all_reduce(group, lanes, step.op, call));
      FD_TRY_VOID(started->advance());
      return started->finish();
    }
    case Kind::all_gather: return collectives.all_gather(group, value_of(step, n, group.me), call);
    case Kind::broadcast:
      return collectives.broadcast(group, group.me == step.root ? value_of(step, n, step.root) : Value(), step.root,
                                   call);
    case Kind::all_to_all: {
      std::vector<Value> to;
      for (int member = 0; member < group.size(); ++member) to.push_back(value_of(step, n, group.me, member));
      return collectives.all_to_all(group, to, call);
    }
    case Kind::barrier: FD_TRY_VOID(collectives.barrier(group, call)); return Value();
    case Kind::send: break;
  }
  if (step.root == step.peer) return Value();
  if (group.me == step.root) FD_TRY_VOID(collectives.send(group, step.peer, value_of(step, n, step.root), call));
  return group.me == step.peer ? collectives.recv(group, step.root, call) : Result<Value>(Value());
}

// The numbers of the steps that a rank got wrong, with why.
std::vector<std::string> mistakes_of(const Story& story, int number, TestTransport::Shared& shared) {
  TestRank rank(shared, number, story.ranks, {.sharded_from = story.sharded_from});
  NotedTransport noted(rank.transport);
  GuardedCollectives guard(rank.collectives, story.guard,
                           {.position = rank.position, .observer = rank.observer, .waits = noted});
  Collectives& collectives = story.guard == Guard::off ? static_cast<Collectives&>(rank.collectives) : guard;
  std::vector<std::string> mistakes;
  for (std::size_t n = 0; n < story.steps.size(); ++n) {
    Group group = story.groups[story.steps[n].group];
    const auto me = std::ranges::find(group.ranks, number);
    if (me == group.ranks.end()) continue;
    group.me = static_cast<int>(me - group.ranks.begin());
    const Result<Value> result = perform(collectives, group, story.steps[n], n);
    if (!result) {
      mistakes.push_back(std::to_string(n) + ": " + describe(result.error()));
      rank.transport.abort(result.error());
      return mistakes;
    }
    const Value right = expected(story, n, group.me);
    if (right ? !result->same_as(right) : static_cast<bool>(*result)) mistakes.push_back(std::to_string(n));
  }
  return mistakes;
}

TEST(RandomCollectives, GiveWhatAModelOfAllMembersSays) {
  EXPECT_TRUE(rc::check("collectives against a model", [] {
    const Story story = draw_story();
    TestTransport::Shared shared;
    std::vector<std::vector<std::string>> mistakes(static_cast<std::size_t>(story.ranks));
    run_threads(story.ranks,
                [&](int rank) { mistakes[static_cast<std::size_t>(rank)] = mistakes_of(story, rank, shared); });
    for (int rank = 0; rank < story.ranks; ++rank) {
      for (const std::string& mistake : mistakes[static_cast<std::size_t>(rank)]) {
        RC_LOG("rank " + std::to_string(rank) + ", step " + mistake);
      }
      RC_ASSERT(mistakes[static_cast<std::size_t>(rank)].empty());
    }
    for (const auto& [key, box] : shared.boxes) RC_ASSERT(box.empty());  // nobody leaves a message behind
  }));
}

}  // namespace
}  // namespace firedrill

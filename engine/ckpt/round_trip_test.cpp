// Random states, saved by some ranks and restored by others, come back bit for bit: types, shapes, padding, groups that
// all hold, that one rank holds, and that are sharded over the ranks.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "engine/base/rng.h"
#include "engine/ckpt/test_run.h"
#include "engine/seam/collectives.h"  // grain, shard_range

namespace firedrill {
namespace {

enum class Held { by_all, by_lane, sharded };

struct DrawnGroup {
  Held held = Held::by_all;
  ShardKind shard = ShardKind::model;
  DType dtype = DType::f32;
  std::vector<Shape> shapes;
};

Shape draw_shape() {
  switch (*rc::gen::inRange(0, 4)) {
    case 0: return {};
    case 1: return {*rc::gen::inRange<std::int64_t>(1, 200)};
    case 2: return {*rc::gen::inRange<std::int64_t>(1, 9), *rc::gen::inRange<std::int64_t>(1, 40)};
    default: return {*rc::gen::inRange<std::int64_t>(1, 4), *rc::gen::inRange<std::int64_t>(1, 5), 7};
  }
}

std::vector<DrawnGroup> draw_groups() {
  std::vector<DrawnGroup> groups(static_cast<std::size_t>(*rc::gen::inRange(1, 6)));
  for (DrawnGroup& group : groups) {
    group.held = static_cast<Held>(*rc::gen::inRange(0, 3));
    group.shard = static_cast<ShardKind>(*rc::gen::inRange(0, shard_kind_count));
    group.dtype = *rc::gen::element(DType::u8, DType::i32, DType::i64, DType::f32, DType::bf16, DType::f16);
    const int tensors = *rc::gen::inRange(1, 4);
    for (int i = 0; i < tensors; ++i) group.shapes.push_back(draw_shape());
  }
  return groups;
}

// The elements [begin, begin + count) of a tensor, as bytes: the same whoever holds them.
std::vector<std::byte> bytes_of(const std::string& tensor, DType dtype, std::int64_t begin, std::int64_t count) {
  const std::uint64_t seed = digest_of(std::string_view(tensor)).low;
  std::vector<std::byte> bytes;
  for (std::int64_t element = begin; element < begin + count; ++element) {
    Rng rng(seed + static_cast<std::uint64_t>(element));
    for (std::size_t i = 0; i < size_of(dtype); ++i) bytes.push_back(static_cast<std::byte>(rng.below(256)));
  }
  return bytes;
}

// Tensors one behind the other, each from a whole grain on; of a sharded group the run that this rank has.
StateGroup group_of(const DrawnGroup& drawn, const std::string& name, const Range* shard) {
  StateGroup group{.name = name, .shard = drawn.shard, .dtype = drawn.dtype};
  std::vector<std::byte> bytes;
  std::int64_t at = 0;  // of the whole group, in elements
  const std::int64_t shift = shard ? shard->begin : 0;
  for (std::size_t i = 0; i < drawn.shapes.size(); ++i) {
    const std::int64_t count = drawn.shapes[i].count();
    const std::int64_t whole = (count + grain - 1) / grain * grain;
    const std::int64_t begin = shard ? std::clamp(shard->begin - at, std::int64_t{0}, whole) : 0;
    const std::int64_t end = shard ? std::clamp(shard->end - at, std::int64_t{0}, whole) : whole;
    const std::int64_t last = std::min(end, count);
    TensorSlot slot{.name = name + "." + std::to_string(i), .shape = drawn.shapes[i], .offset = at + begin - shift};
    if (shard) {
      slot.begin = begin;
      slot.length = std::max<std::int64_t>(0, last - begin);
    }
    if (end > begin) {
      std::vector<std::byte> run(static_cast<std::size_t>(end - begin) * size_of(drawn.dtype));
      if (last > begin) std::ranges::copy(bytes_of(slot.name, drawn.dtype, begin, last - begin), run.begin());
      bytes.insert(bytes.end(), run.begin(), run.end());
      if (last > begin) group.tensors.push_back(slot);
    }
    at += whole;
  }
  group.count = static_cast<std::int64_t>(bytes.size() / size_of(drawn.dtype));
  group.value = Value::copy_of(drawn.dtype, Shape{group.count}, bytes);
  return group;
}

StateView state_of(const std::vector<DrawnGroup>& groups, int lanes, int ranks, int rank) {
  StateView state;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::string name = "group." + std::to_string(i);
    if (groups[i].held == Held::by_all) state.push_back(group_of(groups[i], name, nullptr));
    if (groups[i].held == Held::sharded) {
      std::int64_t whole = 0;
      for (const Shape& shape : groups[i].shapes) whole += (shape.count() + grain - 1) / grain * grain;
      const Range grains = shard_range(whole / grain, ranks, rank);
      const Range shard{.begin = grains.begin * grain, .end = grains.end * grain};
      state.push_back(group_of(groups[i], name, &shard));
      state.back().replicated = false;
    }
    if (groups[i].held != Held::by_lane) continue;
    for (int lane = rank * lanes / ranks; lane < (rank + 1) * lanes / ranks; ++lane) {
      state.push_back(group_of(groups[i], name + ".lane." + std::to_string(lane), nullptr));
      state.back().replicated = false;
    }
  }
  return state;
}

std::vector<Status> save(TestDisk& disk, int ranks, const std::vector<DrawnGroup>& groups) {
  TestAttempt attempt(disk, 1, ranks);
  return attempt.run([&](const CheckpointContext& ctx, Protocol& protocol) -> Status {
    FD_TRY_VOID(protocol.claim_attempt(ctx));
    FD_TRY_VOID(protocol.find(ctx));
    const StateView state = state_of(groups, attempt.job.lanes.dp, ranks, ctx.world.me);
    FD_TRY_VOID(protocol.publish(ctx, 2, state, digest_of_state(state)));
    return {};
  });
}

std::vector<Status> restore(TestDisk& disk, int ranks, const std::vector<DrawnGroup>& groups) {
  TestAttempt attempt(disk, 2, ranks);
  return attempt.run([&](const CheckpointContext& ctx, Protocol& protocol) -> Status {
    FD_TRY_VOID(protocol.claim_attempt(ctx));
    FD_TRY(const FindResult found, protocol.find(ctx));
    const StateView expected = state_of(groups, attempt.job.lanes.dp, ranks, ctx.world.me);
    StateView state = blank(expected);
    FD_TRY_VOID(protocol.restore(ctx, found, state));
    if (!same_state(state, expected)) return Error{.message = "restored something else"};
    return {};
  });
}

TEST(RoundTrip, ARandomStateComesBackOnAnyNumberOfRanks) {
  EXPECT_TRUE(rc::check("the format against random states", [] {
    const std::vector<DrawnGroup> groups = draw_groups();
    const int savers = *rc::gen::element(1, 2, 4);
    const int restorers = *rc::gen::element(1, 2, 4);
    TestDisk disk(*rc::gen::element(CatalogKind::files, CatalogKind::files, CatalogKind::rocksdb));
    for (const Status& saved : save(disk, savers, groups)) {
      if (!saved) RC_FAIL("saving: " + describe(saved.error()));
    }
    for (const Status& restored : restore(disk, restorers, groups)) {
      if (!restored) RC_FAIL("restoring: " + describe(restored.error()));
    }
  }));
}

}  // namespace
}  // namespace firedrill

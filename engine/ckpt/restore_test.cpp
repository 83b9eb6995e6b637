#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/ckpt/test_run.h"

namespace firedrill {
namespace {

using testing::HasSubstr;

// Restores step 2, saved by attempt 1, into what `change` makes of the state asked for.
struct Restoring {
  TestDisk disk;
  std::vector<Status> results;
  bool touched = false;  // the live state of any rank was changed
  bool marked = false;   // the checkpoint had its mark when it was restored

  explicit Restoring(const std::function<void(StateView&)>& change, const std::function<void(TestDisk&)>& between = {},
                     const TestAttempt::MakeProtocol& protocol = {}) {
    expect_ok(TestAttempt(disk).train({2}));
    TestAttempt attempt(disk, 2);
    if (protocol) attempt.make_protocol = protocol;
    results = attempt.run([&](const CheckpointContext& ctx, Protocol& p) -> Status {
      FD_TRY_VOID(p.claim_attempt(ctx));
      FD_TRY(const FindResult found, p.find(ctx));
      FD_TRY_VOID(ctx.parts.collectives.barrier(ctx.world, ctx.call("test")));
      if (between && ctx.world.me == 0) between(disk);
      FD_TRY_VOID(ctx.parts.collectives.barrier(ctx.world, ctx.call("test")));
      StateView state = blank(test_state(attempt.job, 4, ctx.world.me, 2));
      change(state);
      Status restored = p.restore(ctx, found, state);
      for (const StateGroup& group : state) touched = touched || (!restored && group.value);
      return restored;
    });
  }
};

TEST(Restore, AMissingTensorIsNamed) {
  const Restoring restoring([](StateView& state) {
    state[0].tensors.push_back({.name = "model/new.weight", .shape = {4}, .offset = 364});
    state[0].count += 64;
  });
  const Error error = cause(restoring.results);
  EXPECT_EQ(error.code, Code::mismatch);
  EXPECT_THAT(error.message, HasSubstr("no tensor model/new.weight (f32 [4])"));
  EXPECT_FALSE(restoring.touched);
}

TEST(Restore, ATensorThatNothingTakesIsNamed) {
  const Restoring restoring([](StateView& state) { state.erase(state.begin() + 1); });
  const Error error = cause(restoring.results);
  EXPECT_EQ(error.code, Code::mismatch);
  EXPECT_THAT(error.message, HasSubstr("holds optimizer/layer.weight (f32 [5, 7]), which nothing in this job takes"));
  EXPECT_FALSE(restoring.touched);
}

TEST(Restore, AnotherShapeAndAnotherTypeAreNamedWithBothSides) {
  const Restoring shape([](StateView& state) { state[0].tensors.change(0).shape = {7, 5}; });
  EXPECT_THAT(cause(shape.results).message,
              HasSubstr("holds model/layer.weight (f32 [5, 7]), this job needs model/layer.weight (f32 [7, 5])"));
  EXPECT_FALSE(shape.touched);
  const Restoring type([](StateView& state) { state[2].dtype = DType::f32; });
  EXPECT_THAT(cause(type.results).message, HasSubstr("progress.step (i64 [])"));
}

TEST(Restore, AByteThatFlippedBehindFindIsRefusedAndNoRankTakesAnything) {
  const Restoring restoring([](StateView&) {}, [](TestDisk& disk) { disk.at("shards/2-1-1/model-3").back() ^= 4; });
  const Error error = cause(restoring.results);
  EXPECT_EQ(error.code, Code::corrupted);
  EXPECT_THAT(error.message, HasSubstr("model-3"));
  EXPECT_FALSE(restoring.touched);
}

TEST(Restore, AnErrorOfOneRankIsEverybodysAndNoRankTakesAnything) {
  const Restoring restoring([](StateView&) {},
                            [](TestDisk& disk) {
                              disk.hook = [](const DiskOperation& operation) -> std::optional<Error> {
                                if (operation.rank != 1 || operation.op != FileOp::read) return std::nullopt;
                                return Error{.code = Code::io_error, .message = "injected", .injected = true};
                              };
                            });
  for (const Status& result : restoring.results) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, Code::io_error);
  }
  EXPECT_FALSE(restoring.touched);
}

TEST(Restore, ACandidateThatAllRestoredGetsItsMark) {
  TestDisk disk;
  disk.hook = [](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.op == FileOp::create && operation.path == "validated/2-1-1") {
      return Error{.code = Code::dead, .message = "killed"};
    }
    return std::nullopt;
  };
  (void)TestAttempt(disk).train({2});
  disk.hook = nullptr;
  ASSERT_FALSE(disk.has("validated/2-1-1"));
  TestAttempt attempt(disk, 2);
  expect_ok(attempt.train({}));
  EXPECT_EQ(attempt.restored->step, 2);
  EXPECT_TRUE(disk.has("validated/2-1-1"));
  EXPECT_TRUE(disk.durable.contains("validated/2-1-1"));
  EXPECT_EQ(attempt.observer.all(EventKind::validated).size(), 1U);
}

TEST(Restore, OneReadPerShardIsEnoughWhenAllOfItIsNeeded) {
  Restoring restoring([](StateView&) {}, [](TestDisk& disk) { disk.log.clear(); });
  expect_ok(restoring.results);
  int reads = 0;
  for (const DiskOperation& operation : restoring.disk.log) {
    if (operation.op == FileOp::read && operation.rank == 2) ++reads;
  }
  // Rank 2 needs the model and optimizer shards of all, its own lane, and what rank 0 saved of the replicated rest.
  EXPECT_EQ(reads, 4 + 4 + 2);
}

class ForgetsProgress : public Protocol {
  Status restored(const CheckpointContext&, const FindResult&, StateView& state) override {
    const std::int64_t zero[] = {0, 0};
    state[2].value = Value::copy_of(std::span<const std::int64_t>(zero));
    return {};
  }
};

TEST(Restore, AnOverridingStepMayChangeWhatWasRestored) {
  TestDisk disk;
  expect_ok(TestAttempt(disk).train({2}));
  TestAttempt attempt(disk, 2);
  attempt.make_protocol = [] { return std::make_unique<ForgetsProgress>(); };
  EXPECT_EQ(cause(attempt.train({})).message, "restored something else");
}

}  // namespace
}  // namespace firedrill

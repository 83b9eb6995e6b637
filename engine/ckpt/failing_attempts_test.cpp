// Attempts that fail one after the other before they start: whatever the disk refused them, what a later one
// acknowledges is there after a power loss. Every pair of a changing operation of the coordinator and a later sync is
// tried; what else fails leaves what the next change would have left.
#include <gtest/gtest.h>

#include "engine/ckpt/test_run.h"

namespace firedrill {
namespace {

constexpr int ranks = 2;

bool is_sync(const DiskOperation& operation) {
  return operation.op == FileOp::sync || operation.op == FileOp::sync_directory;
}

bool is_change(const DiskOperation& operation) {
  switch (operation.op) {
    case FileOp::create:
    case FileOp::write:
    case FileOp::rename:
    case FileOp::remove:
    case FileOp::make_directory: return true;
    default: return is_sync(operation);
  }
}

// What a power loss leaves of steps 2 and 4.
std::unique_ptr<TestDisk> durable_checkpoints(CatalogKind catalog) {
  TestDisk disk(catalog);
  expect_ok(TestAttempt(disk, 1, ranks).train({2, 4}));
  return disk.after_power_loss();
}

using Fits = std::function<bool(const DiskOperation&)>;

// Refuses the n-th fitting operation of rank 0, from 1; a rank that is dead then is refused all others, too.
struct Refusal {
  int nth = 0;
  Fits fits;
  Code code = Code::io_error;
  int seen = 0;
  std::string what;

  std::optional<Error> operator()(const DiskOperation& operation) {
    if (operation.rank != 0) return std::nullopt;
    const bool over = !what.empty() && code == Code::dead;
    if (!over && (!fits(operation) || ++seen != nth)) return std::nullopt;
    if (!over) what = std::string(to_string(operation.op)) + " of " + operation.path;
    return Error{.code = code, .message = what, .injected = true};
  }
};

// False: the attempt had fewer such operations, and nothing was refused.
bool fail_once(TestDisk& disk, int attempt, std::int64_t floor, Refusal& refusal) {
  disk.hook = [&refusal](const DiskOperation& operation) { return refusal(operation); };
  TestAttempt failing(disk, attempt, ranks);
  failing.floor = floor;
  (void)failing.train({});
  disk.hook = nullptr;
  return !refusal.what.empty();
}

std::optional<CheckpointId> started_from(TestDisk& disk, int attempt, std::int64_t floor,
                                         const std::vector<std::int64_t>& steps) {
  TestAttempt well(disk, attempt, ranks);
  well.floor = floor;
  expect_ok(well.train(steps));
  return well.restored;
}

class FailingAttempts : public BothCatalogs {};
INSTANTIATE_TEST_SUITE_P(Catalogs, FailingAttempts, both_catalogs, catalog_name);

// Attempts `first` and the next one fail; whoever comes behind them starts from `start`, and step 6 can be saved.
void expect_durable_behind_two(const std::function<std::unique_ptr<TestDisk>()>& make, int first, std::int64_t floor,
                               std::optional<CheckpointId> start, Code code) {
  int pairs = 0;
  for (int i = 1;; ++i) {
    Refusal one{.nth = i, .fits = is_change, .code = code};
    if (!fail_once(*make(), first, floor, one)) break;
    for (int j = 1;; ++j, ++pairs) {
      const auto disk = make();
      Refusal before{.nth = i, .fits = one.fits, .code = code};
      Refusal after{.nth = j, .fits = is_sync};
      (void)fail_once(*disk, first, floor, before);
      if (!fail_once(*disk, first + 1, floor, after)) break;
      SCOPED_TRACE(before.what + " of attempt " + std::to_string(first) + ", then " + after.what);
      EXPECT_EQ(started_from(*disk->after_power_loss(), first + 2, floor, {}), start);
      EXPECT_EQ(started_from(*disk, first + 2, floor, {}), start);
      EXPECT_EQ(started_from(*disk->after_power_loss(), first + 3, floor, {}), start);
      EXPECT_EQ(started_from(*disk, first + 3, floor, {6}), start);
      EXPECT_EQ(discover_on(*disk->after_power_loss(), TestAttempt(*disk, first + 4)).chosen, id(6, first + 3));
    }
  }
  EXPECT_GT(pairs, 50);
}

TEST_P(FailingAttempts, InANewDirectoryLeaveNothingThatALaterOneWronglyTrusts) {
  for (const Code code : {Code::io_error, Code::dead}) {
    expect_durable_behind_two([] { return std::make_unique<TestDisk>(GetParam()); }, 1, -1, std::nullopt, code);
  }
}

TEST_P(FailingAttempts, BehindCheckpointsLeaveNothingThatALaterOneWronglyTrusts) {
  const auto base = durable_checkpoints(GetParam());
  for (const Code code : {Code::io_error, Code::dead}) {
    expect_durable_behind_two([&base] { return base->after_power_loss(); }, 2, 4, id(4), code);
  }
}

TEST_P(FailingAttempts, BelowTheFloorLeaveNothingThatALaterOneWronglyTrusts) {
  const auto base = durable_checkpoints(GetParam());
  for (std::string* bytes : {&base->at("shards/4-1-1/model-1"), &base->now["shards/4-1-1/model-1"]->durable}) {
    (*bytes)[200] ^= 1;
  }
  for (const Code code : {Code::io_error, Code::dead}) {
    expect_durable_behind_two([&base] { return base->after_power_loss(); }, 2, 4, id(2), code);
  }
}

}  // namespace
}  // namespace firedrill

#include "faults/trigger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "faults/census.h"

namespace firedrill {
namespace {

constexpr CallSite compute{.op = SeamOp::compute};
CallSite file(FileOp op, std::string_view path, std::string_view second = {}) {
  return {.op = SeamOp::file, .file_op = op, .path = path, .second_path = second};
}
Position at(std::int64_t step, Phase phase) { return {.attempt = 1, .rank = 2, .step = step, .phase = phase}; }

// Which of `calls` calls at one position are hit, from 1.
std::vector<int> hits(Trigger& trigger, const Position& position, const CallSite& call, int calls) {
  std::vector<int> found;
  for (int i = 1; i <= calls; ++i) {
    if (!trigger.hit(position, call)) continue;
    trigger.count_firing();
    found.push_back(i);
  }
  return found;
}

TEST(Trigger, FiresOnceAtTheNthMatchingCall) {
  const FaultSpec spec{.at = {.rank = 2, .step = 3, .phase = Phase::backward, .nth = 2}};
  Trigger trigger(spec, 0);
  EXPECT_EQ(hits(trigger, at(2, Phase::backward), compute, 5), std::vector<int>{});
  EXPECT_EQ(hits(trigger, at(3, Phase::forward), compute, 5), std::vector<int>{});
  EXPECT_EQ(hits(trigger, at(3, Phase::backward), compute, 5), std::vector<int>{2});
  EXPECT_TRUE(trigger.used_up());
}

TEST(Trigger, CountsAnewInEveryStepAndPhase) {
  const FaultSpec spec{.at = {.rank = 2, .nth = 3}};
  Trigger trigger(spec, 0);
  EXPECT_EQ(hits(trigger, at(1, Phase::forward), compute, 2), std::vector<int>{});
  EXPECT_EQ(hits(trigger, at(1, Phase::backward), compute, 2), std::vector<int>{});
  EXPECT_EQ(hits(trigger, at(2, Phase::forward), compute, 2), std::vector<int>{});
  EXPECT_EQ(hits(trigger, at(2, Phase::backward), compute, 3), std::vector<int>{3});
}

TEST(Trigger, GoesOnCountingInAPhaseThatIsEnteredAgain) {
  const FaultSpec spec{.at = {.rank = 2, .phase = Phase::forward, .nth = 3}};
  Trigger trigger(spec, 0);
  EXPECT_EQ(hits(trigger, at(1, Phase::forward), compute, 2), std::vector<int>{});
  EXPECT_EQ(hits(trigger, at(1, Phase::backward), compute, 2), std::vector<int>{});
  EXPECT_EQ(hits(trigger, at(1, Phase::forward), compute, 2), std::vector<int>{1});
}

TEST(Trigger, SeveralTimesGoOnFromTheNthCall) {
  const FaultSpec spec{.at = {.rank = 2, .nth = 2}, .times = 3};
  Trigger trigger(spec, 0);
  EXPECT_EQ(hits(trigger, at(1, Phase::save), compute, 3), (std::vector<int>{2, 3}));
  EXPECT_EQ(hits(trigger, at(2, Phase::save), compute, 5), std::vector<int>{2});
}

TEST(Trigger, WithoutEndNeverIsUsedUp) {
  const FaultSpec spec{.at = {.rank = 2}, .times = 0};
  Trigger trigger(spec, 1000);
  EXPECT_TRUE(trigger.possible(1, 2));
  EXPECT_EQ(hits(trigger, at(1, Phase::save), compute, 4).size(), 4U);
}

TEST(Trigger, FiringsOfEarlierAttemptsCount) {
  const FaultSpec spec{.at = {.attempt = std::nullopt, .rank = 2}, .times = 2};
  Trigger once_more(spec, 1);
  EXPECT_TRUE(once_more.possible(5, 2));
  EXPECT_EQ(hits(once_more, at(1, Phase::save), compute, 3), std::vector<int>{1});
  EXPECT_FALSE(Trigger(spec, 2).possible(5, 2));
}

TEST(Trigger, IsPossibleOnlyOnItsRankAndAttempt) {
  const FaultSpec spec{.at = {.attempt = 2, .rank = 1}};
  EXPECT_TRUE(Trigger(spec, 0).possible(2, 1));
  EXPECT_FALSE(Trigger(spec, 0).possible(1, 1));
  EXPECT_FALSE(Trigger(spec, 0).possible(2, 0));
}

TEST(Trigger, MatchesOperationAndPath) {
  const FaultSpec write{.at = {.rank = 2, .op = SeamOp::file, .file_op = FileOp::write, .path = "shards/*/model-?"}};
  const auto first = [&write](const CallSite& call) { return Trigger(write, 0).hit(at(2, Phase::save), call); };
  EXPECT_TRUE(first(file(FileOp::write, "shards/2-1-1/model-2")));
  EXPECT_FALSE(first(file(FileOp::read, "shards/2-1-1/model-2")));
  EXPECT_FALSE(first(file(FileOp::write, "shards/2-1-1/extra-2")));
  EXPECT_FALSE(first(compute));
}

TEST(Trigger, RenameMatchesByEitherName) {
  const FaultSpec spec{.at = {.rank = 2, .path = "manifests/*"}};
  const auto first = [&spec](const CallSite& call) { return Trigger(spec, 0).hit(at(2, Phase::commit), call); };
  EXPECT_TRUE(first(file(FileOp::rename, "tmp/2-1-1", "manifests/2-1-1")));
  EXPECT_TRUE(first(file(FileOp::rename, "manifests/2-1-1", "tmp/2-1-1")));
  EXPECT_FALSE(first(file(FileOp::rename, "tmp/2-1-1", "shards/2-1-1")));
}

TEST(Trigger, CountsOnlyCallsThatTheKindCanBeAbout) {
  const FaultSpec spec{.kind = FaultKind::no_space, .at = {.rank = 2, .nth = 2}};
  Trigger trigger(spec, 0);
  const Position position = at(2, Phase::save);
  EXPECT_FALSE(trigger.hit(position, compute));
  EXPECT_FALSE(trigger.hit(position, file(FileOp::create, "a")));  // the first
  EXPECT_FALSE(trigger.hit(position, file(FileOp::sync, "a")));
  EXPECT_TRUE(trigger.hit(position, file(FileOp::write, "a")));  // the second
}

// One call of every sort that a trigger tells apart, each in a step of its own.
Census one_of_each() {
  Census census;
  TaskCalls& task = census.add_task(1, 0);
  const auto add = [&](CountedCall call) {
    call.step = static_cast<std::int32_t>(task.calls.size());
    task.calls.push_back(call);
  };
  for (int op = 0; op < file_op_count; ++op) {
    for (const std::string_view path : {"shards/2-1-1/model-1", "manifests/2-1-1", "validated/2-1-1", "catalog/log"}) {
      const std::int32_t number = census.number_of(path);
      add({.op = SeamOp::file, .file_op = static_cast<FileOp>(op), .path = number});
      add({.op = SeamOp::file,
           .file_op = static_cast<FileOp>(op),
           .path = census.number_of("tmp/manifest"),
           .second = number});
    }
  }
  for (int op = 0; op < collective_op_count; ++op) {
    for (const auto& [alone, overtaken] : {std::pair(true, false), std::pair(false, false), std::pair(false, true)}) {
      add({.op = SeamOp::collective,
           .collective = static_cast<CollectiveOp>(op),
           .alone = alone,
           .overtaken = overtaken});
    }
  }
  for (const auto kernel : {KernelKind::forward, KernelKind::backward, KernelKind::optimizer, KernelKind::reduce,
                            KernelKind::codec, KernelKind::other}) {
    add({.op = SeamOp::compute, .kernel = kernel});
  }
  for (const bool has_bytes : {false, true}) add({.op = SeamOp::send, .has_bytes = has_bytes, .peer = 1});
  for (const SeamOp op : {SeamOp::recv, SeamOp::store, SeamOp::input}) add({.op = op, .peer = 1});
  return census;
}

TEST(FirstLike, HasThePlacesOfItsKindWhateverTheOptions) {
  const Census census = one_of_each();
  std::set<FaultKind> shared;
  for (const FaultKindInfo& info : fault_kinds()) {
    const FaultKind first = first_like(info.kind);
    EXPECT_EQ(first_like(first), first) << info.name;
    if (first == info.kind) continue;
    shared.insert(first);
    for (const std::string_view path : {"", "shards/*", "manifests/*"}) {
      FaultSpec fault{.kind = info.kind, .at = {.path = std::string(path)}};
      const std::vector<FaultPlace> places = places_of(fault, census);
      EXPECT_FALSE(path.empty() && places.empty()) << info.name;
      fault.kind = first;
      EXPECT_TRUE(places == places_of(fault, census)) << info.name << " and " << info_of(first).name << " at " << path;
    }
  }
  EXPECT_GT(shared.size(), 3U);
}

}  // namespace
}  // namespace firedrill

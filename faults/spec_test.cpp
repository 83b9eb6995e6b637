#include "faults/spec.h"

#include <gtest/gtest.h>

#include <set>

#include "faults/kinds.h"
#include "faults/node_loss.h"

namespace firedrill {
namespace {

TEST(FaultSpec, IsSaidInWords) {
  EXPECT_EQ(describe(FaultSpec{.at = {.rank = 2, .step = 3, .phase = Phase::backward}}),
            "kill rank 2 at step 3, backward, call 1");
  EXPECT_EQ(describe(FaultSpec{.at = {.attempt = std::nullopt,
                                      .rank = 0,
                                      .step = 6,
                                      .phase = Phase::commit,
                                      .op = SeamOp::file,
                                      .file_op = FileOp::rename,
                                      .path = "manifests/*",
                                      .when = When::after}}),
            "kill rank 0 at step 6, commit, after rename 1 of manifests/*, in any attempt");
  EXPECT_EQ(describe(FaultSpec{.kind = FaultKind::kill_node,
                               .at = {.attempt = 2, .rank = 1, .op = SeamOp::send, .nth = 4},
                               .times = 2,
                               .lose_unsynced_data = true}),
            "kill_node of rank 1, send 4, in attempt 2, 2 times, losing unsynced data");
  EXPECT_EQ(describe(FaultSpec{.kind = FaultKind::io_error, .at = {.rank = 1, .file_op = FileOp::read}, .times = 0}),
            "io_error on rank 1, read 1, without end");
  const auto end_of = [](const FaultSpec& fault) {
    const std::string text = describe(fault);
    return text.substr(text.find("call 1") + 6);
  };
  EXPECT_EQ(end_of({.kind = FaultKind::torn_write, .lost = Part::middle}), ", without its middle third");
  EXPECT_EQ(end_of({.kind = FaultKind::misdirected_write}), ", to another offset");
  EXPECT_EQ(end_of({.kind = FaultKind::misdirected_write, .lands_in = Landing::file}), ", into another file");
  EXPECT_EQ(end_of({.kind = FaultKind::slow_disk, .delay = std::chrono::milliseconds(20)}), ", by 20ms");
  EXPECT_EQ(end_of({.kind = FaultKind::late_visibility}), ", for 1 looks");
  EXPECT_EQ(end_of({.kind = FaultKind::late_visibility, .delay = std::chrono::milliseconds(2), .looks = 3}),
            ", for 3 looks, for 2ms");
  EXPECT_EQ(end_of({.kind = FaultKind::clock_skew, .ahead = std::chrono::hours(1)}), ", 1h ahead");
  EXPECT_EQ(end_of({.kind = FaultKind::clock_skew, .behind = std::chrono::hours(2)}), ", 2h behind");
}

TEST(FaultKinds, EachHasItsOwnNameAndEffect) {
  std::set<std::string_view> names;
  std::set<TakeEffect> effects;
  for (std::size_t i = 0; i < fault_kinds().size(); ++i) {
    const FaultKindInfo& info = fault_kinds()[i];
    EXPECT_EQ(static_cast<std::size_t>(info.kind), i) << "the list is in the order of FaultKind";
    EXPECT_FALSE(info.summary.empty());
    names.insert(info.name);
    effects.insert(effect_of(info.kind));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(fault_kind_count));
  EXPECT_EQ(effects.size(), static_cast<std::size_t>(fault_kind_count));
}

TEST(Persistence, DataAndNamesAreLostSeparately) {
  const UnsyncedItem data{.kind = UnsyncedKind::data, .path = "a"};
  const UnsyncedItem name{.kind = UnsyncedKind::name, .path = "a"};
  for (const bool lose_data : {false, true}) {
    for (const bool lose_names : {false, true}) {
      const UnsyncedChooser lost = lose_unsynced({.data = lose_data, .names = lose_names});
      EXPECT_EQ(lost(data), lose_data);
      EXPECT_EQ(lost(name), lose_names);
    }
  }
}

}  // namespace
}  // namespace firedrill

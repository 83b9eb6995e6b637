#include <gtest/gtest.h>

#include <optional>

#include "harness/audit/test_root.h"

namespace firedrill {
namespace {

TEST(Auditor, AnswersFromMemoryOnlyForTheSameBytes) {
  Auditor auditor;
  const auto audit = [&](const Root& root) {
    const auto disk = root.disk();
    const auto view = disk->files({});
    return auditor.audit(*view).checkpoints.at(0).contents;
  };
  Root root;
  const auto first = audit(root);
  EXPECT_EQ(audit(root), first);
  root.shard("model-1").back() ^= 1;
  EXPECT_FALSE(audit(root)->intact);
  root.shard("model-1").back() ^= 1;
  EXPECT_EQ(audit(root), first);
  root.files.erase("shards/2-1-1/extra-0");
  EXPECT_FALSE(audit(root)->intact);
}

TEST(Auditor, DecodesNothingAgainThatHasTheMarkOfWhatItKnows) {
  Auditor auditor;
  const auto audit = [&](const Root& root, const Auditor::ContentMark& mark) {
    const auto disk = root.disk();
    const auto view = disk->files({});
    return auditor.audit(*view, mark).checkpoints.at(0).contents;
  };
  const auto marked = [](std::uint64_t mark) {
    return [mark](const CheckpointId& id) {
      EXPECT_EQ(id, frozen_id);
      return std::optional(Digest{.high = 1, .low = mark});
    };
  };
  Root root;
  const auto first = audit(root, marked(1));
  EXPECT_TRUE(first->intact);
  root.shard("model-1").back() ^= 1;
  EXPECT_EQ(audit(root, marked(1)), first);
  EXPECT_FALSE(audit(root, marked(2))->intact);
  EXPECT_FALSE(audit(root, {})->intact);
  EXPECT_FALSE(audit(root, [](const CheckpointId&) { return std::nullopt; })->intact);
}

TEST(Auditor, KeepsNoMarkOfAManifestThatSpeaksOfAnotherDirectory) {
  Auditor auditor;
  const auto mark = [](const CheckpointId&) { return std::optional(Digest{.high = 1, .low = 1}); };
  const auto audit = [&](const Root& root) {
    const auto disk = root.disk();
    const auto view = disk->files({});
    return auditor.audit(*view, mark).checkpoints.at(0).contents;
  };
  Root elsewhere;
  elsewhere.change_manifest([](Json& manifest) { manifest["directory"] = "shards/3-1-1"; });
  EXPECT_FALSE(audit(elsewhere)->intact);
  EXPECT_TRUE(audit(Root())->intact);
}

}  // namespace
}  // namespace firedrill

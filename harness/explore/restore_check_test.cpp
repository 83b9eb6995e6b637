#include "harness/explore/restore_check.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/seam/contract/file_system_contract.h"
#include "harness/explore/test_subject.h"

namespace firedrill {
namespace {

using testing::HasSubstr;

void with_empty_overlay(const std::function<void(FileSystem&)>& body) {
  FixedContent empty;
  Overlay overlay;
  overlay.look_at(empty);
  body(*overlay.files());
}

INSTANTIATE_TEST_SUITE_P(Explore, FileSystemContract, testing::Values(FileSystemSubject{"overlay", with_empty_overlay}),
                         [](const auto& subject) { return subject.param.name; });

TEST(Overlay, WhatIsWrittenHidesTheContentAndIsForgottenWithTheNextOne) {
  FixedContent content;
  const auto directory = content.add(DiskContent::root, "d", FileKind::directory);
  content.add(directory, "a", FileKind::file, Value::copy_of("old"));
  Overlay overlay;
  overlay.look_at(content);
  const auto files = overlay.files();
  ASSERT_TRUE(files->remove("d/a"));
  ASSERT_TRUE(files->create("d/b"));
  EXPECT_THAT(*files->list("d"), testing::ElementsAre("b"));
  EXPECT_TRUE(files->open("d/a").failed_with(Code::not_found));
  overlay.look_at(content);
  EXPECT_THAT(*files->list("d"), testing::ElementsAre("a"));
  EXPECT_EQ((*(*files->open("d/a"))->read(0, 10)).text(), "old");
}

TEST(Overlay, ADirectoryThatIsRenamedTakesWhatIsInItAlong) {
  FixedContent content;
  content.add(content.add(DiskContent::root, "d", FileKind::directory), "a", FileKind::file, Value::copy_of("old"));
  Overlay overlay;
  overlay.look_at(content);
  const auto files = overlay.files();
  ASSERT_TRUE(files->open("d/a"));
  ASSERT_TRUE(files->rename("d", "e"));
  EXPECT_TRUE(files->open("d/a").failed_with(Code::not_found));
  EXPECT_TRUE(files->open("e/a"));
}

TEST(Overlay, DigestsAreLeftOutWhereTheyAreNotKept) {
  FixedContent content;
  content.add(DiskContent::root, "a", FileKind::file, Value::copy_of("bytes"));
  for (const bool keep : {true, false}) {
    Overlay overlay({.keep_digests = keep});
    overlay.look_at(content);
    const Value first = *(*overlay.files()->open("a"))->read(0, 2);
    EXPECT_EQ(first.digest_known(), keep);
    EXPECT_EQ(first.text(), "by");
  }
}

// The disk behind a whole run, with one file replaced or left out.
FixedContent disk_after(const ExploreSubject& subject, const std::string& path = {}, const Value& instead = {}) {
  const auto run = record_run(subject, subject.plan());
  FD_CHECK(run && run->finished, "the run did not finish");
  std::vector<crash::OperationId> all(run->trace.operations.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<crash::OperationId>(i);
  FixedContent content;
  std::map<std::string, DiskContent::Node> nodes{{"", DiskContent::root}};
  for (const crash::BaseEntry& entry : settled(run->trace, all).base) {
    if (entry.path == path && !instead) continue;
    nodes[entry.path] = content.add(nodes.at(std::string(parent_path(entry.path))), file_name(entry.path), entry.kind,
                                    entry.path == path ? instead : entry.bytes);
  }
  return content;
}

TEST(RestoreCheck, AWholeDiskGivesTheNewestCheckpointAndItsGolden) {
  const auto subject = subject_of("one_publish");
  FixedContent content = disk_after(*subject);
  for (const bool keep : {true, false}) {
    RestoreCheck check(subject->to_check(2), {.keep_digests = keep});
    for (int i = 0; i < 3; ++i) {
      const CheckAnswer& answer = check.check(content);
      EXPECT_TRUE(answer.restored && answer.golden) << answer.trouble;
      EXPECT_EQ(answer.found->step, 4);
    }
  }
}

TEST(RestoreCheck, ADamagedShardGivesTheOlderCheckpointAndTheNextCheckIsNotDisturbed) {
  const auto subject = subject_of("one_publish");
  FixedContent whole = disk_after(*subject);
  FixedContent damaged = disk_after(*subject, "shards/4-1-1/extra-2", Value::copy_of("short"));
  FixedContent both = disk_after(*subject, "manifests/2-1-1", Value::copy_of("{}"));
  RestoreCheck check(subject->to_check(2));
  EXPECT_EQ(check.check(whole).found->step, 4);
  EXPECT_EQ(check.check(damaged).found->step, 2);
  EXPECT_TRUE(check.check(damaged).golden);
  EXPECT_EQ(check.check(both).found->step, 4);
  EXPECT_EQ(check.check(whole).found->step, 4);
}

TEST(RestoreCheck, WhatCannotBeRestoredIsToldAndTheRanksStartAnew) {
  const auto subject = subject_of("one_publish");
  FixedContent whole = disk_after(*subject);
  FixedContent alien = disk_after(*subject, "attempts/1.seen", Value::copy_of("torn"));
  RestoreCheck check(subject->to_check(2));
  EXPECT_FALSE(check.check(alien).restored);
  EXPECT_THAT(check.check(alien).trouble, HasSubstr("attempts/1.seen"));
  EXPECT_TRUE(check.check(whole).golden);
}

TEST(RestoreCheck, AnEmptyDiskIsAFreshStart) {
  const auto subject = subject_of("one_publish");
  FixedContent empty;
  RestoreCheck check(subject->to_check(1));
  EXPECT_TRUE(check.check(empty).fresh) << check.check(empty).trouble;
}

TEST(RestoreCheck, ARestoreThatForgetsSomethingDiffersFromTheGolden) {
  const auto right = subject_of("one_publish");
  FixedContent content = disk_after(*right);
  const auto mutant = subject_of("one_publish", {}, "optimizer_step_reset");
  RestoreCheck check(mutant->to_check(2));
  const CheckAnswer& answer = check.check(content);
  EXPECT_TRUE(answer.restored);
  EXPECT_FALSE(answer.golden);
  EXPECT_THAT(answer.trouble, HasSubstr("optimizer.step of step 4 unlike the golden"));
}

// A restore that leaves one group of rank 1 as it was given, from the second time on.
struct Forgetful {
  StateView* state = nullptr;  // of rank 1, known from the first time on
  Value given;
};
class ForgetfulProtocol final : public Protocol {
 public:
  explicit ForgetfulProtocol(Forgetful& memory) : memory_(memory) {}

 private:
  Status allow_start(const CheckpointContext& ctx, const Survey& survey, const FindResult& result) const override {
    if (ctx.parts.position.rank == 1 && memory_.state != nullptr) memory_.given = memory_.state->front().value;
    return Protocol::allow_start(ctx, survey, result);
  }
  Status restored(const CheckpointContext& ctx, const FindResult& found, StateView& state) override {
    if (ctx.parts.position.rank == 1) {
      if (memory_.state != nullptr) state.front().value = memory_.given;
      memory_.state = &state;
    }
    return Protocol::restored(ctx, found, state);
  }
  Forgetful& memory_;
};

TEST(RestoreCheck, WhatARestoreLeavesOutIsNotThereFromTheCheckBefore) {
  const auto subject = subject_of("one_publish");
  FixedContent content = disk_after(*subject);
  Forgetful memory;
  CheckSubject forgetful = subject->to_check(2);
  forgetful.protocol = [&memory] { return std::make_unique<ForgetfulProtocol>(memory); };
  RestoreCheck check(forgetful);
  EXPECT_TRUE(check.check(content).golden);
  for (int i = 0; i < 2; ++i) {
    const CheckAnswer& answer = check.check(content);
    EXPECT_TRUE(answer.restored);
    EXPECT_FALSE(answer.golden);
    EXPECT_THAT(answer.trouble, HasSubstr("unlike the golden"));
  }
}

TEST(RestoreCheck, ARankThatHasSeenOtherContentsAnswersLikeANewOne) {
  const auto subject = subject_of("one_publish");
  std::vector<FixedContent> contents(1);
  contents.push_back(disk_after(*subject));
  contents.push_back(disk_after(*subject, "shards/4-1-1/extra-2", Value::copy_of("short")));
  contents.push_back(disk_after(*subject, "validated/4-1-1"));
  contents.push_back(disk_after(*subject, "manifests/4-1-1"));
  const auto text_of = [](const CheckAnswer& answer) {
    return fmt::format("{} {} {} {} {}", answer.restored, answer.fresh, answer.golden,
                       answer.found ? to_string(*answer.found) : "nothing", answer.trouble);
  };
  RestoreCheck seasoned(subject->to_check(2));
  for (FixedContent& before : contents) {
    for (FixedContent& content : contents) {
      seasoned.check(before);
      const std::string answer = text_of(seasoned.check(content));
      RestoreCheck fresh(subject->to_check(2));
      EXPECT_EQ(answer, text_of(fresh.check(content)));
    }
  }
}

}  // namespace
}  // namespace firedrill

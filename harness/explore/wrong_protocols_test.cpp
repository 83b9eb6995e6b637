// The publication protocols of systems in use: which profile shows the window of each, as the head of its file says.
#include <algorithm>

#include "harness/explore/test_subject.h"

namespace firedrill {
namespace {

using crash::ProfileKind;

struct Wrong {
  std::string mutant;
  std::vector<ProfileKind> shown_by;
  std::vector<std::string> set = {};
};

std::vector<Wrong> wrong_protocols() {
  const std::vector<ProfileKind> posix = {ProfileKind::posix};
  const std::vector<ProfileKind> local = {ProfileKind::posix, ProfileKind::ext4};
  const std::vector<ProfileKind> all = {ProfileKind::posix, ProfileKind::ext4, ProfileKind::nfs};
  return {{"protocol_largest_directory", all},
          {"protocol_latest_file", local},
          {"protocol_metadata_last", posix},
          {"protocol_overwrite_in_place", all},
          {"protocol_purge_before_commit", all, {"job.checkpoint.keep_validated=1"}},
          {"protocol_rename_unsynced", local},
          {"protocol_tracker_file", all},
          {"protocol_unsynced_files", local},
          {"protocol_unsynced_parent", posix}};
}

TEST(WrongProtocols, EachShowsItsWindowUnderTheProfilesItsFileNamesAndUnderNoOther) {
  const CrashSpec spec = spec_of("one_publish");
  for (const Wrong& wrong : wrong_protocols()) {
    const auto subject = subject_of("one_publish", wrong.set, wrong.mutant);
    for (const ProfileKind profile : {ProfileKind::posix, ProfileKind::ext4, ProfileKind::nfs}) {
      const bool shown = std::ranges::find(wrong.shown_by, profile) != wrong.shown_by.end();
      const CrashCheckResult result =
          checked(*subject, spec, {.profile = profile, .engine = EngineKind::lazy, .stop_at_first = true});
      EXPECT_EQ(result.violations > 0, shown) << wrong.mutant << " under " << to_string(profile);
      EXPECT_EQ(result.story.has_value(), shown) << wrong.mutant;
      EXPECT_NE(result.complete, shown) << wrong.mutant << " under " << to_string(profile);
    }
  }
}

TEST(WrongProtocols, TheRightOneShowsNoneUnderAnyProfile) {
  const CrashSpec spec = spec_of("one_publish");
  for (const std::string keep : {"1", "2"}) {
    const auto subject = subject_of("one_publish", {"job.checkpoint.keep_validated=" + keep});
    for (const ProfileKind profile : {ProfileKind::posix, ProfileKind::ext4, ProfileKind::nfs}) {
      const CrashCheckResult result = checked(*subject, spec, {.profile = profile, .engine = EngineKind::lazy});
      EXPECT_EQ(result.violations, 0U) << to_string(profile) << ", keeping " << keep;
      EXPECT_TRUE(result.complete) << to_string(profile) << ", keeping " << keep;
    }
  }
}

// Each sync of the save of step 4 by rank 1 fails once: a later one of the same file that succeeds promises nothing.
TEST(WrongProtocols, ASyncThatFailedIsNotMadeGoodByTheNextAndOnlyThatShowsTheMutant) {
  const CrashSpec spec = spec_of("sync_fails_once");
  for (const std::string mutant : {"", "protocol_sync_again"}) {
    const auto subject = subject_of("sync_fails_once", {}, mutant);
    const CrashCheckResult result =
        checked(*subject, spec, {.engine = EngineKind::lazy, .stop_at_first = !mutant.empty()});
    EXPECT_EQ(result.violations > 0, !mutant.empty()) << (result.story ? result.story->what : "");
    EXPECT_EQ(result.complete, mutant.empty());
  }
}

}  // namespace
}  // namespace firedrill

// A checkpoint root on a real directory in which somebody has left what must not be there: links that lead out, pipes,
// files of a size that nothing may allocate. Each is an error or damage; nothing outside of the root changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engine/ckpt/frozen_root.h"
#include "engine/ckpt/test_run.h"
#include "engine/os/directory_file_system.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class HostileRoot : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "firedrill-hostile-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    base_ = pattern;
    root_ = base_ / "root";
    outside_ = base_ / "outside";
    fs::copy(frozen_root, root_, fs::copy_options::recursive);
    fs::create_directory(outside_);
    std::ofstream(outside_ / "precious") << "kept";
    std::ofstream(outside_ / "model-0") << "kept, too";
  }
  void TearDown() override { fs::remove_all(base_); }

  // One rank takes the root over: claims, finds, restores and publishes the steps.
  Status take_over(const std::vector<std::int64_t>& steps) {
    auto opened = DirectoryFileSystem::open_root(root_);
    if (!opened) return opened.error();
    TestTransport::Shared wires;
    TestTransport transport(wires, 0, 1);
    DirectCompute compute;
    Position position{.attempt = 2, .rank = 0};
    TestObserver observer;
    TransportCollectives collectives(transport, compute, position, observer);
    NoStore store;
    NoHost host;
    TestClock clock;
    Parts parts{.files = **opened,
                .transport = transport,
                .collectives = collectives,
                .store = store,
                .compute = compute,
                .clock = clock,
                .host = host,
                .observer = observer,
                .position = position};
    const Job job = test_job();
    RunIdentity identity = make_run_identity(job, {}, "run-1", digest_of(std::string_view("corpus")), "numerics-1");
    identity.job_digest = frozen_job(*disk_of(frozen_root));
    const Groups groups = groups_of(job, {}, 0);
    const CheckpointContext ctx{
        .parts = parts, .job = job, .world = groups.world, .identity = identity, .attempt = 2, .floor = 2};
    Protocol protocol;
    FD_TRY_VOID(protocol.claim_attempt(ctx));
    FD_TRY(const FindResult found, protocol.find(ctx));
    const StateView expected = test_state(job, 1, 0, 2);
    StateView state = blank(expected);
    FD_TRY_VOID(protocol.restore(ctx, found, state));
    if (!same_state(state, expected)) return Error{.message = "restored something else"};
    for (const std::int64_t step : steps) {
      const StateView next = test_state(job, 1, 0, step);
      FD_TRY(const Publication published, protocol.publish(ctx, step, next, digest_of_state(next)));
      if (published.retention_error) return *published.retention_error;
    }
    return {};
  }

  void expect_outside_untouched() const {
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(outside_)) {
      names.push_back(entry.path().filename().string());
    }
    EXPECT_THAT(names, testing::UnorderedElementsAre("precious", "model-0"));
    EXPECT_EQ(fs::file_size(outside_ / "precious"), 4U);
    EXPECT_EQ(fs::file_size(outside_ / "model-0"), 9U);
  }

  fs::path base_;
  fs::path root_;
  fs::path outside_;
};

TEST_F(HostileRoot, TheFrozenRootIsTakenOverAndItsCheckpointRetired) {
  const Status taken = take_over({4, 6});
  EXPECT_TRUE(taken.ok()) << describe(taken.error());
  EXPECT_FALSE(fs::exists(root_ / "manifests/2-1-1"));
}

TEST_F(HostileRoot, AManifestThatIsALinkIsNotRead) {
  fs::rename(root_ / "manifests/2-1-1", outside_ / "stolen");
  fs::create_symlink(outside_ / "stolen", root_ / "manifests/2-1-1");
  EXPECT_FALSE(take_over({}).ok());
  fs::remove(outside_ / "stolen");
  expect_outside_untouched();
}

TEST_F(HostileRoot, AShardThatIsALinkIsNotRead) {
  fs::rename(root_ / "shards/2-1-1/model-1", outside_ / "stolen");
  fs::create_symlink(outside_ / "stolen", root_ / "shards/2-1-1/model-1");
  EXPECT_FALSE(take_over({}).ok());
  fs::remove(outside_ / "stolen");
  expect_outside_untouched();
}

TEST_F(HostileRoot, NothingIsWrittenThroughALinkInPlaceOfADirectory) {
  for (const char* directory : {"attempts", "manifests", "shards", "validated", "rejected", "tombstones", "tmp"}) {
    fs::remove_all(root_);
    fs::copy(frozen_root, root_, fs::copy_options::recursive);
    fs::remove_all(root_ / directory);
    fs::create_directory_symlink(outside_, root_ / directory);
    EXPECT_FALSE(take_over({4, 6}).ok()) << directory;
    expect_outside_untouched();
  }
}

TEST_F(HostileRoot, TheSweepRemovesNothingThroughALink) {
  fs::create_directory_symlink(outside_, root_ / "shards/1-1-1");
  const Status taken = take_over({4, 6});
  EXPECT_FALSE(taken.ok());
  EXPECT_THAT(describe(taken.error()), HasSubstr("shards/1-1-1"));
  expect_outside_untouched();
}

TEST_F(HostileRoot, APipeInPlaceOfAFileIsAnErrorAndNotAWait) {
  for (const char* path : {"manifests/2-1-1", "shards/2-1-1/model-0", "attempts/1.seen"}) {
    fs::remove_all(root_);
    fs::copy(frozen_root, root_, fs::copy_options::recursive);
    fs::remove(root_ / path);
    ASSERT_EQ(::mkfifo((root_ / path).c_str(), 0600), 0);
    EXPECT_FALSE(take_over({}).ok()) << path;
  }
}

TEST_F(HostileRoot, FilesOfOneGibibyteAreRefusedWithoutTheMemory) {
  rusage before{};
  ::getrusage(RUSAGE_SELF, &before);
  for (const char* path : {"manifests/2-1-1", "attempts/1.seen", "shards/2-1-1/extra-2"}) {
    fs::remove_all(root_);
    fs::copy(frozen_root, root_, fs::copy_options::recursive);
    fs::resize_file(root_ / path, std::uintmax_t{1} << 30);
    const Status taken = take_over({});
    ASSERT_FALSE(taken.ok()) << path;
    EXPECT_THAT(describe(taken.error()), HasSubstr("1073741824")) << path;
  }
  rusage after{};
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 * 1024) << "kibibytes";
}

TEST_F(HostileRoot, NamesThatAreNotOfTheFormatAreIgnored) {
  for (const char* path :
       {"manifests/02-1-1", "manifests/2-1-1.bak", "manifests/..hidden", "validated/9999999999999999-1-1",
        "attempts/01.seen", "attempts/-1", "shards/x", "tmp/2-1-1~"}) {
    std::ofstream(root_ / path) << "noise";
  }
  const Status taken = take_over({4});
  EXPECT_TRUE(taken.ok()) << describe(taken.error());
}

}  // namespace
}  // namespace firedrill

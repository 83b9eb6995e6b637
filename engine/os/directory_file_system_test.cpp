#include "engine/os/directory_file_system.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "engine/seam/contract/file_system_contract.h"

namespace firedrill {
namespace {

class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "firedrill-files-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

void with_directory(const std::function<void(FileSystem&)>& body) {
  const ScratchDirectory scratch;
  const auto files = DirectoryFileSystem::open_root(scratch.path());
  ASSERT_TRUE(files) << describe(files.error());
  body(**files);
}

void with_forwarded(const std::function<void(FileSystem&)>& body) {
  with_directory([&](FileSystem& files) {
    ForwardingFileSystem forwarding(files);
    body(forwarding);
  });
}

INSTANTIATE_TEST_SUITE_P(Os, FileSystemContract,
                         testing::Values(FileSystemSubject{"directory", with_directory},
                                         FileSystemSubject{"forwarded", with_forwarded}),
                         [](const auto& subject) { return subject.param.name; });

TEST(DirectoryFileSystem, PathsThatLeaveTheRootAreRefused) {
  const ScratchDirectory scratch;
  std::filesystem::create_directory(scratch.path() / "root");
  std::filesystem::create_directory(scratch.path() / "outside");
  const auto files = DirectoryFileSystem::open_root(scratch.path() / "root");
  ASSERT_TRUE(files);
  for (const char* path : {"../outside/a", "/tmp/a", "a/../../outside/b", "./a", "a//b", "a/"}) {
    EXPECT_TRUE((*files)->create(path).failed_with(Code::io_error)) << path;
    EXPECT_TRUE((*files)->stat(path).failed_with(Code::io_error)) << path;
    EXPECT_TRUE((*files)->list(path).failed_with(Code::io_error)) << path;
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path() / "outside"));
}

TEST(DirectoryFileSystem, SymbolicLinksAreRefusedWhereverTheyStand) {
  const ScratchDirectory scratch;
  std::filesystem::create_directories(scratch.path() / "root/real");
  std::filesystem::create_symlink("real", scratch.path() / "root/link");
  std::filesystem::create_symlink("real/a", scratch.path() / "root/file_link");
  const auto files = DirectoryFileSystem::open_root(scratch.path() / "root");
  ASSERT_TRUE(files);
  ASSERT_TRUE((*files)->create("real/a"));
  EXPECT_TRUE((*files)->open("link/a").failed_with(Code::io_error));
  EXPECT_TRUE((*files)->create("link/b").failed_with(Code::io_error));
  EXPECT_TRUE((*files)->list("link").failed_with(Code::io_error));
  EXPECT_TRUE((*files)->open("file_link").failed_with(Code::io_error));
  EXPECT_TRUE((*files)->stat("file_link").failed_with(Code::io_error));
}

TEST(DirectoryFileSystem, AReadTakesMemoryForWhatIsThereAndNotForWhatIsAsked) {
  with_directory([](FileSystem& files) {
    auto file = files.create("a");
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write(0, Value::copy_of("text")));
    const auto bytes = (*file)->read(0, std::int64_t{1} << 60);
    ASSERT_TRUE(bytes);
    EXPECT_EQ(bytes->text(), "text");
    EXPECT_FALSE(bytes->digest_known());
  });
}

TEST(DirectoryFileSystem, AShortWriteGoesOnAndTheFailureBehindItIsReported) {
  with_directory([](FileSystem& files) {
    auto file = files.create("a");
    ASSERT_TRUE(file);
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    // The kernel writes up to the limit and says so; only the next write fails.
    const auto signal_before = ::signal(SIGXFSZ, SIG_IGN);
    const rlimit tiny{.rlim_cur = 4096, .rlim_max = before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tiny), 0);
    const Status written = (*file)->write(0, Value::copy_of(std::string(10'000, 'x')));
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    ::signal(SIGXFSZ, signal_before);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, Code::io_error);
    EXPECT_EQ(written.error().message, "write of a failed: File too large");
    const auto size = (*file)->size();
    ASSERT_TRUE(size);
    EXPECT_EQ(*size, 4096);
  });
}

TEST(DirectoryFileSystem, ADeviceIsNotAFile) {
  const auto files = DirectoryFileSystem::open_root("/dev");
  ASSERT_TRUE(files);
  EXPECT_TRUE((*files)->open("null").failed_with(Code::io_error));
  EXPECT_TRUE((*files)->stat("null").failed_with(Code::io_error));
}

TEST(DirectoryFileSystem, ErrorsNameOperationPathAndReason) {
  with_directory([](FileSystem& files) {
    const auto missing = files.open("shards/4-1-1/model-0");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, Code::not_found);
    EXPECT_EQ(missing.error().message, "open of shards/4-1-1/model-0 failed: No such file or directory");
    EXPECT_FALSE(missing.error().injected);
  });
}

TEST(DirectoryFileSystem, DamageChangesAFileInPlaceAndMakesNone) {
  const ScratchDirectory scratch;
  const auto files = DirectoryFileSystem::open_root(scratch.path());
  ASSERT_TRUE(files);
  ASSERT_TRUE((*(*files)->create("a"))->write(0, Value::copy_of("text")));
  ASSERT_TRUE((*files)->overwrite("a", 1, Value::copy_of("E")));
  EXPECT_EQ((*(*files)->open("a"))->read(0, 9)->text(), "tExt");
  EXPECT_TRUE((*files)->overwrite("b", 0, Value::copy_of("x")).failed_with(Code::not_found));
  EXPECT_TRUE((*files)->stat("b").failed_with(Code::not_found));
}

TEST(DirectoryFileSystem, TellsWhenAFileWasModified) {
  with_directory([](FileSystem& files) {
    const auto before = std::chrono::system_clock::now().time_since_epoch() - std::chrono::seconds(5);
    ASSERT_TRUE(files.create("a") && files.make_directory("d"));
    for (const char* path : {"a", "d"}) {
      const auto info = files.stat(path);
      ASSERT_TRUE(info);
      EXPECT_GE(info->modified, before) << path;
      EXPECT_LE(info->modified, before + std::chrono::minutes(5)) << path;
    }
  });
}

TEST(DirectoryFileSystem, AMissingRootIsNotFound) {
  EXPECT_TRUE(DirectoryFileSystem::open_root("/nonexistent/firedrill").failed_with(Code::not_found));
}

}  // namespace
}  // namespace firedrill

#include "faults/interposer/ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "faults/interposer/ring_reader.h"

namespace firedrill::interposer {
namespace {

using testing::HasSubstr;

class RingTest : public testing::Test {
 protected:
  RingTest() {
    char name[] = "/tmp/firedrill-ring-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~RingTest() override {
    unmap_ring(ring_);
    std::filesystem::remove_all(folder_);
  }

  void make(std::uint32_t capacity) {
    auto made = make_ring({.folder = folder_ / "rings", .capacity = capacity, .faults = 1, .plan = "plan.json"});
    ASSERT_TRUE(made.ok()) << describe(made.error());
    ring_ = *made;
  }
  void add(std::uint64_t count) const {
    const Claim claimed = claim(ring_);
    claimed.entry->op = Op::all_reduce;
    claimed.entry->count = claimed.entry->asked = count;
    claimed.entry->call = count;  // the same value twice shows a torn entry
    publish(claimed);
  }
  std::filesystem::path file() const { return std::filesystem::directory_iterator(folder_ / "rings")->path(); }
  RingDump dump() const {
    auto found = read_ring(file());
    EXPECT_TRUE(found.ok()) << describe(found.error());
    return found ? *std::move(found) : RingDump{};
  }

  std::filesystem::path folder_;
  Ring ring_;
};

TEST_F(RingTest, KeepsTheNewestEntries) {
  make(16);
  for (std::uint64_t i = 0; i < 40; ++i) add(i);
  const RingDump found = dump();
  EXPECT_EQ(found.begun, 40U);
  ASSERT_EQ(found.calls.size(), 16U);
  EXPECT_EQ(found.calls.front().count, 24U);
  EXPECT_EQ(found.calls.back().count, 39U);
  EXPECT_EQ(found.pid, ::getpid());
  EXPECT_EQ(found.plan, "plan.json");
}

TEST_F(RingTest, TellsAnEntryThatWasBeingWritten) {
  make(16);
  add(1);
  claim(ring_).entry->count = 7;
  add(2);
  const RingDump found = dump();
  EXPECT_EQ(found.incomplete, 1U);
  EXPECT_EQ(found.calls.size(), 2U);
}

TEST_F(RingTest, LosesNoEntryOfManyThreads) {
  constexpr std::uint64_t each = 4000;
  make(4 * each);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < each; ++i) add(t * each + i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const RingDump found = dump();
  std::set<std::uint64_t> counts;
  for (const CallRecord& call : found.calls) {
    EXPECT_EQ(call.count, call.call);
    counts.insert(call.count);
  }
  EXPECT_EQ(counts.size(), 4 * each);
  EXPECT_EQ(found.incomplete, 0U);
}

TEST_F(RingTest, ReadsWholeEntriesWhileTheyAreWritten) {
  make(64);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint64_t i = 0; !stop.load(); ++i) add(i);
  });
  std::size_t read = 0;
  for (int i = 0; i < 200; ++i) {
    for (const RingDump ring = dump(); const CallRecord& call : ring.calls) {
      EXPECT_EQ(call.count, call.call);
      ++read;
    }
  }
  stop.store(true);
  writer.join();
  EXPECT_GT(dump().calls.size(), 0U);
  RecordProperty("entries_read", static_cast<int>(read));
}

TEST_F(RingTest, ASecondOneOfTheProcessHasAnotherName) {
  make(16);
  auto second = make_ring({.folder = folder_ / "rings", .capacity = 16});
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(read_rings(folder_ / "rings")->size(), 2U);
  unmap_ring(*second);
}

TEST_F(RingTest, RefusesAFolderThatIsALink) {
  std::filesystem::create_directory(folder_ / "elsewhere");
  std::filesystem::create_directory_symlink(folder_ / "elsewhere", folder_ / "rings");
  const auto made = make_ring({.folder = folder_ / "rings"});
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(describe(made.error()), HasSubstr("is a link, no folder, or belongs to another user"));
}

TEST_F(RingTest, SaysWhereItCannotBeMade) {
  const auto made = make_ring({.folder = "/proc/nowhere"});
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(describe(made.error()), HasSubstr("/proc/nowhere"));
}

TEST_F(RingTest, TheReaderRefusesWhatIsNoRing) {
  const auto refusal = [&](const std::string& bytes) {
    std::ofstream(folder_ / "a.ring", std::ios::binary) << bytes;
    const auto ring = read_ring(folder_ / "a.ring");
    return ring ? "" : describe(ring.error());
  };
  EXPECT_THAT(refusal(""), HasSubstr("this is no ring"));
  EXPECT_THAT(refusal(std::string(100'000, 'x')), HasSubstr("this is no ring"));
  make(16);
  std::ifstream stream(file(), std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_EQ(refusal(good), "");
  EXPECT_THAT(refusal(good.substr(0, good.size() - 1)), HasSubstr("do not fit the file"));
  std::string other_version = good;
  other_version[offsetof(RingHeader, version)] = 9;
  EXPECT_THAT(refusal(other_version), HasSubstr("a ring of version 9, this reads version 1"));
  EXPECT_EQ(read_ring(folder_ / "none.ring").error().code, Code::not_found);
}

}  // namespace
}  // namespace firedrill::interposer

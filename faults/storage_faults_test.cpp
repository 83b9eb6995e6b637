// Each storage fault is seen to fire, to do what its name says, to be journaled before, and to fire as often as told.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "faults/fake_world.h"
#include "faults/faulty_file_system.h"

namespace firedrill {
namespace {

using Lines = std::vector<std::string>;
using std::chrono::milliseconds;

// The file system of one rank under faults, and what another rank of the node sees of the same disk.
struct Rank {
  explicit Rank(FaultSpec fault) : plan{std::move(fault)} {}
  Rank(FaultSpec fault, FaultSpec second) : plan{std::move(fault), std::move(second)} {}

  std::string text_of(std::string_view path, FileSystem* through = nullptr) {
    const auto file = (through ? through : world.files.get())->open(path);
    return file ? std::string((*file)->read(0, 1 << 20)->text()) : "no such file";
  }
  // Writes through the fault, without a sync.
  Status put(std::string_view path, std::string_view text) {
    FD_TRY(const auto file, files.create(path));
    return file->write(0, Value::copy_of(text));
  }
  std::string after_power_loss(std::string_view path) {
    return text_of(path, world.disk.snapshot(sim::View::power_fails).get());
  }
  bool fired_once() const { return world.journaled == Lines{"0 at 1/4/save"}; }

  std::vector<FaultSpec> plan;
  Position position{.attempt = 1, .rank = 0, .step = 4, .phase = Phase::save};
  FakeWorld world;
  Injector injector{plan, {}, position, world};
  FaultyFileSystem files{*world.files, injector};
};

FaultSpec fault(FaultKind kind, int times = 1) { return {.kind = kind, .times = times}; }

TEST(StorageFaults, CanEachBeAboutTheOperationsTheyNameAndNoOthers) {
  for (const FaultKindInfo& info : fault_kinds()) {
    int fits = 0;
    for (int i = 0; i < file_op_count; ++i) {
      const bool named = info.seams == 0 && (info.file_ops == 0 || (info.file_ops >> i & 1) != 0);
      EXPECT_EQ(kind_fits(info.kind, {.op = SeamOp::file, .file_op = static_cast<FileOp>(i)}), named) << info.name;
      fits += named;
    }
    EXPECT_EQ(fits > 0, info.seams == 0) << info.name;
    const bool of_send = info.seams == 0 ? info.file_ops == 0 : (info.seams & bit_of(SeamOp::send)) != 0;
    EXPECT_EQ(kind_fits(info.kind, {.op = SeamOp::send}), of_send) << info.name;
  }
}

TEST(LoseUnsynced, KillsTheNodeWithItsDataOrItsNames) {
  Rank data(fault(FaultKind::lose_unsynced_data));
  EXPECT_TRUE(data.files.list("").failed_with(Code::dead));
  EXPECT_EQ(data.world.node_deaths, Lines{"data lost names kept"});
  Rank names(fault(FaultKind::lose_unsynced_names));
  EXPECT_TRUE(names.files.list("").failed_with(Code::dead));
  EXPECT_EQ(names.world.node_deaths, Lines{"data kept names lost"});
  EXPECT_FALSE(names.world.died_before_journal);
}

TEST(TornWrite, LosesTheThirdItNames) {
  const auto torn = [](Part lost, std::string_view text) {
    FaultSpec spec = fault(FaultKind::torn_write);
    spec.lost = lost;
    Rank rank(spec);
    EXPECT_TRUE(rank.put("a", text)) << "and nobody is told";
    EXPECT_TRUE(rank.fired_once());
    return rank.text_of("a");
  };
  const auto zeros = [](std::size_t count) { return std::string(count, '\0'); };
  EXPECT_EQ(torn(Part::first, "aaabbbccc"), zeros(3) + "bbbccc");
  EXPECT_EQ(torn(Part::middle, "aaabbbccc"), "aaa" + zeros(3) + "ccc");
  EXPECT_EQ(torn(Part::last, "aaabbbccc"), "aaabbb" + zeros(3));
  EXPECT_EQ(torn(Part::last, "aaabbb" + zeros(3)), zeros(3) + "bbb" + zeros(3)) << "a tear is always one";
  const std::string long_text(2000, 'x');
  EXPECT_EQ(torn(Part::middle, long_text), std::string(512, 'x') + zeros(512) + std::string(976, 'x'))
      << "a long write is torn between sectors";
}

TEST(DroppedWrite, LeavesTheFileAsItWas) {
  Rank rank(fault(FaultKind::dropped_write));
  EXPECT_TRUE(rank.put("a", "text"));
  EXPECT_TRUE(rank.fired_once());
  EXPECT_EQ(rank.text_of("a"), "");
  EXPECT_TRUE(rank.put("b", "text"));
  EXPECT_EQ(rank.text_of("b"), "text") << "it fires once";
}

TEST(ShortWrite, LandsItsFirstHalf) {
  Rank rank(fault(FaultKind::short_write));
  EXPECT_TRUE(rank.put("a", "halfrest"));
  EXPECT_TRUE(rank.fired_once());
  EXPECT_EQ(rank.text_of("a"), "half");
}

TEST(MisdirectedWrite, LandsAtAnotherOffset) {
  Rank rank(fault(FaultKind::misdirected_write));
  EXPECT_TRUE(rank.put("a", "text"));
  EXPECT_TRUE(rank.fired_once());
  EXPECT_EQ(rank.text_of("a"), std::string(4096, '\0') + "text");
}

TEST(MisdirectedWrite, LandsInTheFileTheRankWroteBefore) {
  FaultSpec spec = fault(FaultKind::misdirected_write);
  spec.lands_in = Landing::file;
  spec.at.nth = 2;
  Rank rank(spec);
  EXPECT_TRUE(rank.put("a", "first"));
  EXPECT_TRUE(rank.put("b", "two"));
  EXPECT_TRUE(rank.fired_once());
  EXPECT_EQ(rank.text_of("a"), "twost");
  EXPECT_EQ(rank.text_of("b"), "");
  Rank alone({.kind = FaultKind::misdirected_write, .lands_in = Landing::file});
  EXPECT_TRUE(alone.put("a", "text"));
  EXPECT_EQ(alone.text_of("a").size(), 4100U) << "there is no other file";
}

TEST(BitFlipOnWrite, FlipsOneBit) {
  Rank rank(fault(FaultKind::bit_flip_on_write));
  EXPECT_TRUE(rank.put("a", "abcd"));
  EXPECT_TRUE(rank.fired_once());
  EXPECT_EQ(rank.text_of("a"), std::string("ab") + static_cast<char>('c' ^ 0x10) + "d");
}

TEST(BitFlipAtRest, DamagesWhatIsStoredForAll) {
  Rank rank(fault(FaultKind::bit_flip_at_rest));
  ASSERT_TRUE(rank.world.files->make_directory("shards"));
  ASSERT_TRUE(rank.world.files->make_directory("attempts"));
  for (const char* path : {"shards/a", "attempts/1.seen"}) {
    const auto file = rank.world.files->create(path);
    ASSERT_TRUE((*file)->write(0, Value::copy_of("abcd")) && (*file)->sync());
  }
  EXPECT_TRUE(rank.files.open("attempts/1.seen")) << "only files of a checkpoint";
  EXPECT_TRUE(rank.world.journaled.empty());
  const std::string flipped = std::string("ab") + static_cast<char>('c' ^ 0x10) + "d";
  EXPECT_EQ(rank.text_of("shards/a", &rank.files), flipped);
  EXPECT_TRUE(rank.fired_once());
  EXPECT_EQ(rank.text_of("shards/a"), flipped) << "it stays so, for all";
}

TEST(BitFlips, OfTwoFaultsAtOnePlaceDoNotUndoEachOther) {
  Rank on_write(fault(FaultKind::bit_flip_on_write), fault(FaultKind::bit_flip_on_write));
  EXPECT_TRUE(on_write.put("a", "abcd"));
  const std::string flipped = std::string("ab") + static_cast<char>('c' ^ 0x10 ^ 0x20) + "d";
  EXPECT_EQ(on_write.text_of("a"), flipped);
  Rank at_rest(fault(FaultKind::bit_flip_at_rest), fault(FaultKind::bit_flip_at_rest));
  ASSERT_TRUE(at_rest.world.files->make_directory("shards"));
  ASSERT_TRUE((*at_rest.world.files->create("shards/a"))->write(0, Value::copy_of("abcd")));
  EXPECT_EQ(at_rest.text_of("shards/a", &at_rest.files), flipped);
}

TEST(FailedSync, ReportsAnErrorAndALaterOneDoesNotHelp) {
  Rank rank(fault(FaultKind::failed_sync));
  const auto file = rank.files.create("a");
  ASSERT_TRUE((*file)->write(0, Value::copy_of("text")));
  const Status synced = (*file)->sync();
  ASSERT_TRUE(synced.failed_with(Code::io_error));
  EXPECT_TRUE(synced.error().injected);
  EXPECT_TRUE(rank.fired_once());
  EXPECT_TRUE((*file)->sync());
  EXPECT_TRUE(rank.files.sync_directory(""));
  EXPECT_EQ(rank.text_of("a"), "text");
  EXPECT_EQ(rank.after_power_loss("a"), "");
}

TEST(FailedSync, OfADirectoryForgetsItsNames) {
  FaultSpec spec = fault(FaultKind::failed_sync);
  spec.at.op = SeamOp::file;
  spec.at.file_op = FileOp::sync_directory;
  Rank rank(spec);
  ASSERT_TRUE(rank.files.create("a"));
  EXPECT_TRUE(rank.files.sync_directory("").failed_with(Code::io_error));
  EXPECT_TRUE(rank.files.sync_directory(""));
  EXPECT_EQ(rank.after_power_loss("a"), "no such file");
}

TEST(LyingSync, ReportsSuccessAndMakesNothingDurable) {
  Rank rank(fault(FaultKind::lying_sync, 2));
  const auto file = rank.files.create("a");
  ASSERT_TRUE((*file)->write(0, Value::copy_of("text")));
  EXPECT_TRUE((*file)->sync());
  EXPECT_TRUE(rank.files.sync_directory(""));
  EXPECT_EQ(rank.after_power_loss("a"), "no such file");
  EXPECT_EQ(rank.world.journaled.size(), 2U);
  EXPECT_TRUE((*file)->sync());
  EXPECT_TRUE(rank.files.sync_directory(""));
  EXPECT_EQ(rank.after_power_loss("a"), "text") << "an honest sync still can";
}

TEST(SlowDisk, TakesLongerByItsDelay) {
  FaultSpec spec = fault(FaultKind::slow_disk, 2);
  spec.delay = milliseconds(30);
  Rank rank(spec);
  EXPECT_TRUE(rank.files.list(""));
  EXPECT_EQ(rank.world.time, milliseconds(30));
  EXPECT_TRUE(rank.put("a", "text"));
  EXPECT_EQ(rank.world.time, milliseconds(60)) << "twice, then no more";
  EXPECT_EQ(rank.text_of("a"), "text");
}

TEST(StaleListing, LacksTheNewestName) {
  Rank rank(fault(FaultKind::stale_listing));
  for (const char* name : {"10-1-1", "8-1-1", "9-1-2"}) ASSERT_TRUE(rank.world.files->create(name));
  EXPECT_EQ(*rank.files.list(""), (Lines{"8-1-1", "9-1-2"}));
  EXPECT_TRUE(rank.fired_once());
  EXPECT_EQ(rank.files.list("")->size(), 3U) << "it fires once";
  Rank empty(fault(FaultKind::stale_listing));
  EXPECT_TRUE(empty.files.list("")->empty());
}

TEST(StaleStat, TellsTheSizeOfAFileThatIsJustMade) {
  Rank rank(fault(FaultKind::stale_stat, 2));
  ASSERT_TRUE(rank.put("a", "text"));
  EXPECT_EQ(*(*rank.files.open("a"))->size(), 0);
  EXPECT_EQ(rank.files.stat("a")->size, 0);
  EXPECT_EQ(rank.world.journaled.size(), 2U);
  EXPECT_EQ(rank.files.stat("a")->size, 4);
}

TEST(LateVisibility, HidesANameForSomeLooks) {
  FaultSpec spec = fault(FaultKind::late_visibility);
  spec.looks = 3;
  Rank rank(spec);
  ASSERT_TRUE(rank.world.files->create("9") && rank.world.files->create("10"));
  EXPECT_EQ(*rank.files.list(""), Lines{"9"});
  EXPECT_TRUE(rank.fired_once());
  const auto opened = rank.files.open("10");
  ASSERT_TRUE(opened.failed_with(Code::not_found));
  EXPECT_TRUE(opened.error().injected);
  EXPECT_TRUE(rank.files.open("9"));
  EXPECT_TRUE(rank.files.stat("10").failed_with(Code::not_found));
  EXPECT_TRUE(rank.files.stat("10"));
  EXPECT_EQ(rank.files.list("")->size(), 2U);
  EXPECT_EQ(rank.world.journaled.size(), 1U) << "one name is one firing";
}

TEST(LateVisibility, HidesANameForATime) {
  FaultSpec spec = fault(FaultKind::late_visibility);
  spec.delay = milliseconds(5);
  Rank rank(spec);
  ASSERT_TRUE(rank.world.files->create("a"));
  EXPECT_TRUE(rank.files.open("a").failed_with(Code::not_found));
  EXPECT_TRUE(rank.files.open("a").failed_with(Code::not_found));
  rank.world.time = milliseconds(5);
  EXPECT_TRUE(rank.files.open("a"));
}

TEST(FileVanishes, BetweenItsListingAndItsOpening) {
  Rank rank(fault(FaultKind::file_vanishes));
  ASSERT_TRUE(rank.world.files->make_directory("manifests"));
  ASSERT_TRUE(rank.world.files->create("manifests/4-1-1"));
  EXPECT_EQ(*rank.files.list("manifests"), Lines{"4-1-1"});
  EXPECT_TRUE(rank.files.open("manifests/4-1-1").failed_with(Code::not_found));
  EXPECT_TRUE(rank.fired_once());
  EXPECT_TRUE(rank.world.files->stat("manifests/4-1-1").failed_with(Code::not_found)) << "it is gone for all";
}

TEST(ClockSkew, IsOfTheNodeAndStays) {
  FaultSpec spec = fault(FaultKind::clock_skew);
  spec.behind = std::chrono::hours(1);
  Rank rank(spec);
  EXPECT_TRUE(rank.files.list(""));
  EXPECT_TRUE(rank.files.list(""));
  EXPECT_EQ(rank.world.skew, -std::chrono::hours(1));
  EXPECT_TRUE(rank.fired_once());
}

TEST(IoError, HitsEveryFileOperation) {
  for (int i = 0; i < file_op_count; ++i) {
    const auto op = static_cast<FileOp>(i);
    Rank rank({.kind = FaultKind::io_error, .at = {.op = SeamOp::file, .file_op = op}});
    ASSERT_TRUE(rank.world.files->create("old"));
    const auto work = [](FileSystem& files) -> Status {
      FD_TRY_VOID(files.free_space());
      FD_TRY_VOID(files.make_directory("d"));
      FD_TRY(const auto file, files.create("d/new"));
      FD_TRY_VOID(file->write(0, Value::copy_of("text")));
      FD_TRY_VOID(file->sync());
      FD_TRY_VOID(file->close());
      FD_TRY_VOID(files.sync_directory("d"));
      FD_TRY_VOID(files.stat("d/new"));
      FD_TRY_VOID(files.drop_cache("d/new"));
      FD_TRY(const auto again, files.open("d/new"));
      FD_TRY_VOID(again->read(0, 4));
      FD_TRY_VOID(files.list("d"));
      FD_TRY_VOID(files.rename("d/new", "d/newer"));
      return files.remove("old");
    };
    const Status worked = work(rank.files);
    ASSERT_TRUE(worked.failed_with(Code::io_error)) << to_string(op);
    EXPECT_TRUE(worked.error().injected) << to_string(op);
    EXPECT_TRUE(rank.fired_once()) << to_string(op);
  }
}

TEST(StickyFaults, FireAtEveryCallFromTheNthOn) {
  Rank rank({.kind = FaultKind::dropped_write, .at = {.nth = 2}, .times = 0});
  ASSERT_TRUE(rank.put("a", "text") && rank.put("b", "text") && rank.put("c", "text"));
  EXPECT_EQ(rank.text_of("a") + "|" + rank.text_of("b") + "|" + rank.text_of("c"), "text||");
  EXPECT_EQ(rank.world.journaled.size(), 2U);
}

}  // namespace
}  // namespace firedrill

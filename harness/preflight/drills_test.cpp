// Drills, phases and the load, with real ranks and real kills.
#include "harness/preflight/drills.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "harness/preflight/bench_test.h"

namespace firedrill::preflight {
namespace {

using testing::HasSubstr;

CheckResult first_drill(Bench& bench) {
  return run_drills(bench, {drills_of(bench.options.job, bench.options.layout).front()});
}

CheckResult first_two_drills(Bench& bench) {
  std::vector<Drill> drills = drills_of(bench.options.job, bench.options.layout);
  drills.resize(2);
  return run_drills(bench, drills);
}

TEST(Drills, one_of_each_kind_ends_equal_to_the_golden_by_real_kills_and_leaves_nothing) {
  const Directory directory;
  const CheckResult result = run(check_drills, options_for(directory.path(), 2));
  EXPECT_EQ(result.standing(), Standing::go) << complaint_of(result);
  EXPECT_THAT(result.headline, HasSubstr("5 of 5 equal"));
  for (const Json& drill : result.measured["drills"]) {
    EXPECT_GE(drill["fired"].get<int>(), 1) << drill["name"];
    EXPECT_EQ(drill["final_digest"], drill["golden_digest"]) << drill["name"];
  }
  EXPECT_EQ(result.measured["drills"][0]["attempts"], 2);
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

TEST(Drills, a_rank_may_be_lost_in_every_phase) {
  const Directory directory;
  const CheckResult result = run(check_phases, options_for(directory.path(), 2));
  EXPECT_LE(result.standing(), Standing::note) << complaint_of(result);
  std::size_t fired = 0;
  for (const Json& drill : result.measured["drills"]) fired += drill["fired"].get<int>() > 0 ? 1 : 0;
  EXPECT_EQ(result.measured["drills"].size(), phase_drills().size());
  EXPECT_GE(fired, phase_drills().size() - 1) << result.measured.dump(2);
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

// Of a process with the same number, that was interrupted: a container gives them again.
TEST(Drills, what_another_run_left_is_neither_used_nor_removed) {
  const Directory directory;
  const fs::path left = directory.path() / fmt::format("firedrill-drills-{}", ::getpid()) / "lose-a-rank";
  fs::create_directories(left);
  std::ofstream(left / "disk") << "not a directory";
  const CheckResult result = run(first_drill, options_for(directory.path(), 2));
  EXPECT_EQ(result.standing(), Standing::go) << complaint_of(result);
  EXPECT_TRUE(fs::is_regular_file(left / "disk"));
}

TEST(Drills, a_directory_in_which_no_folder_can_be_made_is_said) {
  const CheckResult result = run(first_drill, options_for("/proc/none", 2));
  EXPECT_EQ(result.standing(), Standing::unknown);
  EXPECT_THAT(worst(result).measured, HasSubstr("cannot make /proc/none/"));
}

TEST(Drills, an_interrupted_one_says_so_and_leaves_nothing) {
  const Directory directory;
  Options options = options_for(directory.path(), 2);
  int begun = 0;
  options.doing = [&](std::string_view) { ++begun; };
  options.stop = [&] { return begun == 2; };
  const CheckResult result = run(first_two_drills, options);
  EXPECT_EQ(result.standing(), Standing::unknown);
  EXPECT_THAT(worst(result).measured, HasSubstr("after 1 of 2 drills"));
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

// What the load said it was doing.
CheckResult load(const fs::path& directory, const char* trouble, std::vector<std::string>& doing) {
  Options options = options_for(directory, 2);
  options.load = std::chrono::seconds(2);
  options.storage_deadline = std::chrono::seconds(3);
  options.doing = [&](std::string_view what) { doing.emplace_back(what); };
  return run(check_load, options, trouble);
}

TEST(Load, two_seconds_of_it_on_a_healthy_machine_are_a_go) {
  const Directory directory;
  std::vector<std::string> doing;
  const CheckResult result = load(directory.path(), "", doing);
  EXPECT_LE(result.standing(), Standing::note) << complaint_of(result);
  EXPECT_GE(result.measured["rounds"].get<int>(), 1);
  EXPECT_EQ(result.measured["bad"], 0);
  EXPECT_THAT(doing, testing::Contains("drill lose-a-rank"));
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

// Storage that passed its check before. A drill on it would hang this process.
TEST(Load, a_mount_that_begins_to_hang_ends_it_before_a_drill) {
  const Directory directory;
  std::vector<std::string> doing;
  const CheckResult result = load(directory.path(), "hung_sync", doing);
  EXPECT_EQ(result.standing(), Standing::no_go);
  EXPECT_THAT(worst(result).where, HasSubstr("round 1 of the load"));
  EXPECT_EQ(result.measured["rounds"], 0);
  EXPECT_THAT(doing, testing::Not(testing::Contains(HasSubstr("drill"))));
}

}  // namespace
}  // namespace firedrill::preflight

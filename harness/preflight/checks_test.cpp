// Each check is seen to pass and to fail, with real ranks, real files and real trouble.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "harness/preflight/bench_test.h"
#include "harness/preflight/drills.h"
#include "harness/preflight/preflight.h"
#include "harness/preflight/troubles_test.h"
#include "harness/run/run.h"

namespace firedrill::preflight {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

CheckResult storage_with(const char* trouble) {
  const Directory directory;
  return run(check_storage, options_for(directory.path(), 2), trouble);
}

TEST(Storage, a_healthy_directory_is_a_go_and_is_left_as_it_was) {
  const Directory directory;
  const CheckResult result = run(check_storage, options_for(directory.path() / "made", 2));
  EXPECT_LE(result.standing(), Standing::note) << complaint_of(result);
  EXPECT_TRUE(fs::is_empty(directory.path() / "made"));
  EXPECT_GT(result.measured["write_bandwidth"].get<double>(), 0);
  EXPECT_EQ(result.measured["ranks"][0]["won"].size() + result.measured["ranks"][1]["won"].size(), 16U);
}

TEST(Storage, a_rename_in_two_steps_is_seen_by_a_reader) {
  const CheckResult result = storage_with("rename_in_two");
  EXPECT_EQ(result.standing(), Standing::no_go);
  EXPECT_THAT(worst(result).needed, HasSubstr("atomic rename"));
}

TEST(Storage, a_create_that_is_not_exclusive_is_seen) {
  const CheckResult result = storage_with("no_exclusive");
  EXPECT_EQ(result.standing(), Standing::no_go);
  EXPECT_THAT(worst(result).needed, HasSubstr("exclusive create"));
}

TEST(Storage, a_sync_that_fails_is_a_no_go) {
  const CheckResult result = storage_with("failing_sync");
  EXPECT_EQ(result.standing(), Standing::no_go);
  EXPECT_THAT(worst(result).measured, HasSubstr("sync of a file failed"));
}

// All of them take longer than the deadline, which is of one.
TEST(Storage, syncs_of_half_a_second_are_a_no_go) {
  const Directory directory;
  Options options = options_for(directory.path(), 2);
  options.storage_deadline = std::chrono::seconds(5);
  const CheckResult result = run(check_storage, options, "slow_sync");
  EXPECT_EQ(result.standing(), Standing::no_go);
  EXPECT_THAT(worst(result).measured, HasSubstr("a sync of a file takes 5"));
}

TEST(Storage, a_file_that_another_rank_does_not_see_is_a_no_go) {
  const CheckResult result = storage_with("late_stat");
  EXPECT_EQ(result.standing(), Standing::no_go);
  EXPECT_THAT(worst(result).where, HasSubstr("rank 1"));
}

TEST(Storage, bytes_that_come_back_otherwise_are_a_no_go) {
  const CheckResult result = storage_with("wrong_bytes");
  EXPECT_EQ(result.standing(), Standing::no_go);
  EXPECT_THAT(complaint_of(result), HasSubstr("other bytes than written"));
}

TEST(Storage, one_that_hangs_is_a_finding_and_no_hang) {
  const Directory directory;
  Options options = options_for(directory.path(), 2);
  options.storage_deadline = std::chrono::seconds(3);
  const CheckResult result = run(check_storage, options, "hung_sync");
  EXPECT_EQ(result.standing(), Standing::no_go);
  EXPECT_THAT(worst(result).measured, HasSubstr("did not come back"));
  EXPECT_TRUE(fs::is_empty(directory.path())) << "another process removes what the killed ones had made";
}

TEST(Storage, a_tmpfs_of_one_megabyte_is_too_small_for_the_checkpoints) {
  Directory directory;
  if (!directory.mount_tmpfs("size=1m")) GTEST_SKIP() << "mounting a file system takes root";
  const CheckResult result = run(check_storage, options_for(directory.path(), 2));
  EXPECT_EQ(result.standing(), Standing::no_go);
  EXPECT_THAT(complaint_of(result), HasSubstr("3 checkpoints"));
}

TEST(Storage, a_read_only_mount_is_a_no_go) {
  Directory directory;
  if (!directory.mount_tmpfs("size=16m") || !directory.make_read_only()) {
    GTEST_SKIP() << "mounting a file system takes root";
  }
  const CheckResult result = run(check_storage, options_for(directory.path(), 2));
  EXPECT_EQ(result.standing(), Standing::no_go);
  EXPECT_THAT(worst(result).measured, HasSubstr("Read-only file system"));
}

TEST(Storage, one_that_is_not_there_is_told_by_what_is_wrong_and_not_by_numbers) {
  const CheckResult result = run(check_storage, options_for("/proc/none", 2));
  EXPECT_EQ(result.standing(), Standing::no_go);
  EXPECT_EQ(result.headline, worst(result).measured);
}

// Process numbers come again in a container, and a probe that was killed removes nothing.
TEST(Storage, what_an_interrupted_run_left_is_in_nobodys_way) {
  const Directory directory;
  fs::create_directory(directory.path() / fmt::format("firedrill-preflight-{}", ::getpid()));
  const CheckResult result = run(check_storage, options_for(directory.path(), 2));
  EXPECT_LE(result.standing(), Standing::note) << complaint_of(result);
}

TEST(Ranks, one_that_is_slow_since_it_computes_has_longer_than_one_that_hangs) {
  ::setenv(trouble_variable, "busy", 1);
  Result<std::unique_ptr<ZygoteLauncher>> launcher = ZygoteLauncher::start_zygote();
  ASSERT_TRUE(launcher);
  Team team(**launcher);
  const Directory directory;
  const auto answers = team.ask({{"probe", "look"}, {"directory", directory.path().string()}, {"may_be_missing", true}},
                                2, std::chrono::milliseconds(1'500));
  ASSERT_TRUE(answers);
  for (const RankAnswer& answer : *answers) EXPECT_EQ(answer.trouble, "");
}

TEST(Machine, a_healthy_one_is_a_go_and_all_ranks_compute_alike) {
  const CheckResult result = run(check_machine, options_for("", 2));
  EXPECT_LE(result.standing(), Standing::note) << complaint_of(result);
  EXPECT_EQ(result.measured["ranks"][0]["numerics"], result.measured["ranks"][1]["numerics_again"]);
}

TEST(Machine, a_low_limit_of_open_files_on_one_rank_is_a_no_go_there) {
  const CheckResult result = run(check_machine, options_for("", 2), "few_files");
  EXPECT_EQ(result.standing(), Standing::no_go);
  EXPECT_THAT(worst(result).where, HasSubstr("rank 1"));
  EXPECT_THAT(worst(result).remedy, HasSubstr("ulimit -n"));
}

TEST(Machine, a_rank_that_dies_under_the_probe_cannot_be_told) {
  const CheckResult result = run(check_machine, options_for("", 2), "dies");
  EXPECT_EQ(result.standing(), Standing::unknown);
  EXPECT_THAT(worst(result).measured, HasSubstr("rank 1"));
}

TEST(Memory, nano_fits_and_a_model_beyond_the_machine_does_not) {
  Options options = options_for("", 2);
  EXPECT_EQ(run(check_memory, options).standing(), Standing::go);
  options.job.model.width = 16'384;
  options.job.model.layers = 64;
  const CheckResult result = run(check_memory, options);
  EXPECT_EQ(result.standing(), Standing::no_go);
  EXPECT_THAT(worst(result).measured, HasSubstr("available"));
}

TEST(Exchange, every_call_of_a_healthy_network_is_right) {
  Loaded<Job> job = load_job("scenarios/jobs/nano-hybrid.yaml");
  ASSERT_TRUE(job);
  Options options = options_for("");
  options.job = *job;
  options.layout = {.dp = 2, .tp = 2};
  const CheckResult result = run(check_exchange, options);
  EXPECT_EQ(result.standing(), Standing::go) << complaint_of(result);
  EXPECT_THAT(result.headline, HasSubstr("tp "));
}

TEST(Exchange, a_link_that_damages_what_it_carries_is_named_by_rank_and_group) {
  const CheckResult result = run(check_exchange, options_for(""), "damaging_link");
  EXPECT_EQ(result.standing(), Standing::no_go);
  EXPECT_THAT(worst(result).needed, HasSubstr("predicted"));
  EXPECT_THAT(worst(result).where, HasSubstr("[0-3]"));
  EXPECT_THAT(result.headline, HasSubstr("calls wrong"));
}

TEST(Exchange, the_link_that_is_late_is_named) {
  const CheckResult result = run(check_exchange, options_for(""), "slow_link");
  ASSERT_EQ(result.standing(), Standing::no_go);
  EXPECT_EQ(worst(result).where, "the link between ranks 0 and 3");
}

TEST(Exchange, a_link_through_a_proxy_that_delays_both_ways_is_named_by_its_ends) {
  const CheckResult result = run(check_exchange, options_for(""), "delaying_proxy");
  ASSERT_EQ(result.standing(), Standing::no_go) << result.headline;
  EXPECT_EQ(worst(result).where, "the link between ranks 0 and 3");
  EXPECT_THAT(result.findings, SizeIs(1));
}

TEST(Exchange, the_link_that_is_narrow_is_named) {
  Options options = options_for("");
  options.level = Level::standard;
  const CheckResult result = run(check_exchange, options, "narrow_link");
  ASSERT_EQ(result.standing(), Standing::no_go);
  EXPECT_EQ(worst(result).where, "the link between ranks 0 and 3");
}

// The network of rank 3; needs root, ip and tc.
class OwnNetwork {
 public:
  OwnNetwork() {
    works_ = ::geteuid() == 0 && shell(
                                     "ip netns add {n} && ip link add fdtest0 type veth peer name fdtest1 netns {n} && "
                                     "ip addr add {o}/24 dev fdtest0 && ip link set fdtest0 up && "
                                     "ip -n {n} addr add {i}/24 dev fdtest1 && ip -n {n} link set fdtest1 up && "
                                     "tc qdisc add dev fdtest0 root tbf rate 400mbit burst 64kb latency 400ms && "
                                     "tc -n {n} qdisc add dev fdtest1 root tbf rate 400mbit burst 64kb latency 400ms");
  }
  ~OwnNetwork() { shell("ip link del fdtest0; ip netns del {n}"); }
  bool works() const { return works_; }

 private:
  static bool shell(const std::string& commands) {
    const std::string text = fmt::format(fmt::runtime(commands), fmt::arg("n", own_network),
                                         fmt::arg("o", address_outside), fmt::arg("i", address_inside));
    return std::system(fmt::format("({}) >/dev/null 2>&1", text).c_str()) == 0;
  }
  bool works_ = false;
};

TEST(Exchange, a_rank_behind_a_narrow_device_is_named) {
  const OwnNetwork network;
  if (!network.works()) GTEST_SKIP() << "a network of its own takes root, ip and tc";
  Options options = options_for("");
  options.level = Level::standard;
  const CheckResult result = run(check_exchange, options, "own_network");
  ASSERT_EQ(result.standing(), Standing::no_go) << result.headline;
  EXPECT_THAT(worst(result).where, HasSubstr("all links of rank 3"));
}

// The share of its time that this thread gets while it works for 300 ms.
double share_of_a_core() {
  const auto used = [] {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec) + static_cast<double>(usage.ru_utime.tv_usec) / 1e6;
  };
  const double before = used();
  const auto began = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - began < std::chrono::milliseconds(300)) {
  }
  return (used() - before) / 0.3;
}

// Entered by rank 1 of the test below.
class QuarterOfACore {
 public:
  QuarterOfACore() {
    std::error_code error;
    fs::create_directory(quarter_group, error);
    std::ofstream(quarter_group + "/cpu.cfs_period_us") << 100'000 << std::flush;
    std::ofstream quota(quarter_group + "/cpu.cfs_quota_us");
    quota << 25'000 << std::flush;
    works_ = !error && quota.good();
  }
  ~QuarterOfACore() {
    std::error_code ignored;
    fs::remove(quarter_group, ignored);
  }
  bool works() const { return works_; }

 private:
  bool works_ = false;
};

TEST(Stragglers, a_rank_held_to_a_quarter_of_its_time_is_named) {
  const QuarterOfACore quota;
  if (!quota.works()) GTEST_SKIP() << "a quota of CPU time takes root and control groups of version 1";
  // Where others take all cores a healthy rank has but a quarter of one, too, and nobody stands out.
  CheckResult result;
  double least = 1;
  for (int tries = 0; tries < 3 && result.standing() != Standing::no_go; ++tries) {
    least = std::min(least, share_of_a_core());
    result = run(check_stragglers, options_for("", 2), "quarter");
    least = std::min(least, share_of_a_core());
  }
  if (result.standing() != Standing::no_go && least < 0.8) {
    GTEST_SKIP() << "this machine is busy: " << least << " of a core for one process";
  }
  ASSERT_EQ(result.standing(), Standing::no_go) << result.headline;
  EXPECT_EQ(worst(result).where, "rank 1");
}

TEST(Drills, an_engine_that_forgets_the_optimizers_step_is_a_no_go) {
  Options options = options_for("");
  Plan plan = plan_of(drills_of(options.job, options.layout).front(), options.job, options.layout);
  plan.world = WorldKind::sim;
  plan.mutant = "optimizer_step_reset";
  Session session({});
  const Result<RunReport> report = session.run(plan);
  ASSERT_TRUE(report) << describe(report.error());
  const Finding finding = judge_drill(drills_of(options.job, options.layout).front(), *report).front();
  EXPECT_EQ(finding.standing, Standing::no_go);
}

TEST(Restore, a_checkpoint_is_restored_at_another_size_without_a_trace_and_one_flipped_bit_is_found) {
  const Directory directory;
  Options options = options_for(directory.path());
  Plan plan = plan_of({.name = "undisturbed", .faults = {}}, options.job, options.layout);
  Session session({});
  const Result<RunReport> report = session.run(plan, {.directory = directory.path()});
  ASSERT_TRUE(report && report->verdict == RunVerdict::pass);
  options.job = plan.job;
  options.layout = {.dp = 2};
  options.restore = directory.path() / "disk";
  const auto entries = [&] { return std::distance(fs::recursive_directory_iterator(options.restore), {}); };
  const auto before = entries();
  const CheckResult whole = run(check_restore, options);
  EXPECT_EQ(whole.standing(), Standing::go) << complaint_of(whole);
  EXPECT_THAT(whole.headline, HasSubstr("6-1-1 restored by 2 ranks"));
  EXPECT_EQ(entries(), before);

  for (const auto& entry : fs::recursive_directory_iterator(options.restore / "shards")) {
    if (entry.path().string().find("/6-1-1/") == std::string::npos || !entry.is_regular_file()) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(-1, std::ios::end);
    const char flipped = static_cast<char>(file.peek() ^ 1);
    file.seekp(-1, std::ios::end);
    file.put(flipped);
    break;
  }
  const CheckResult damaged = run(check_restore, options);
  EXPECT_EQ(damaged.standing(), Standing::no_go);
  EXPECT_THAT(worst(damaged).measured, HasSubstr("6-1-1"));
}

TEST(Preflight, what_was_not_begun_when_it_was_interrupted_could_not_be_told) {
  const Directory directory;
  Options options = options_for(directory.path(), 2);
  int ended = 0;
  options.stop = [&] { return ended > 0; };
  ::setenv(trouble_variable, "", 1);
  const auto results = run_checks(options, [&](const CheckResult&) { ++ended; });
  ASSERT_TRUE(results);
  EXPECT_EQ(exit_code_of(*results), 4);
  EXPECT_LE(results->front().standing(), Standing::note);
  EXPECT_EQ(results->back().headline, "not begun");
}

// Starts nobody, as it is when the zygote is gone.
struct NoLauncher final : Launcher {
  Result<RankProcess> start(RankStart) override {
    return Error{.code = Code::unavailable, .message = "the zygote is gone", .hint = "its reason stands above"};
  }
  Status signal(const RankProcess&, int) override { return {}; }
  Result<ProcessExit> reap(RankProcess&, std::chrono::nanoseconds) override { return ProcessExit{}; }
};

TEST(Preflight, what_fails_while_it_is_interrupted_is_no_finding) {
  NoLauncher launcher;
  Team team(launcher);
  Options options = options_for("", 2);
  Bench bench{.options = options, .team = team};
  EXPECT_EQ(check_machine(bench).standing(), Standing::no_go);
  options.stop = [] { return true; };
  const CheckResult result = check_machine(bench);
  EXPECT_EQ(result.standing(), Standing::unknown);
  EXPECT_EQ(worst(result).measured, "it was interrupted");
}

TEST(Preflight, the_quick_level_runs_its_checks_and_says_go) {
  const Directory directory;
  ::setenv(trouble_variable, "", 1);
  std::vector<std::string> ended;
  const Result<std::vector<CheckResult>> results =
      run_checks(options_for(directory.path(), 2), [&](const CheckResult& result) { ended.push_back(result.name); });
  ASSERT_TRUE(results);
  EXPECT_EQ(exit_code_of(*results), 0);
  EXPECT_THAT(ended, testing::ElementsAre("machine", "storage", "memory", "exchange", "restore"));
}

}  // namespace
}  // namespace firedrill::preflight

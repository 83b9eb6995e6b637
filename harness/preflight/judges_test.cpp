// The judges, on made-up measurements: what a machine must be like to be let through, and what is held against it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/preflight/drills.h"
#include "harness/preflight/exchange.h"
#include "harness/preflight/load.h"
#include "harness/preflight/machine.h"
#include "harness/preflight/memory.h"
#include "harness/preflight/restore.h"
#include "harness/preflight/storage.h"
#include "harness/preflight/straggler.h"

namespace firedrill::preflight {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

MachineOfRank good_machine() {
  return {.host = "a",
          .cores = 8,
          .memory_total = 64'000'000'000,
          .memory_available = 60'000'000'000,
          .memory_own = 80'000'000,
          .address_space = -1,
          .files = 1024,
          .processes = -1,
          .locked_memory = -1,
          .shared_memory = 1'000'000'000,
          .clock_offset = 0,
          .clock_error = 1'000,
          .numerics = "key",
          .numerics_again = "key",
          .nccl = "",
          .driver = ""};
}

TEST(JudgeMachine, a_good_one_has_no_finding) {
  EXPECT_THAT(judge_machine({good_machine(), good_machine()}, {.ranks = 2}), IsEmpty());
}

TEST(JudgeMachine, ranks_that_compute_otherwise_and_a_probe_that_differs_from_itself_are_no_gos) {
  std::vector<MachineOfRank> ranks = {good_machine(), good_machine()};
  ranks[1].numerics = ranks[1].numerics_again = "other";
  ASSERT_THAT(judge_machine(ranks, {.ranks = 2}), SizeIs(1));
  EXPECT_EQ(judge_machine(ranks, {.ranks = 2})[0].standing, Standing::no_go);
  ranks[1].numerics = "key";
  EXPECT_THAT(judge_machine(ranks, {.ranks = 2}).at(0).measured, HasSubstr("two runs"));
}

TEST(JudgeMachine, a_clock_is_held_to_its_error_and_versions_to_rank_0) {
  std::vector<MachineOfRank> ranks = {good_machine(), good_machine()};
  ranks[1].clock_offset = -3'000'000'000;
  EXPECT_THAT(judge_machine(ranks, {.ranks = 2}).at(0).measured, HasSubstr("3.000 s behind"));
  ranks[1].clock_error = 2'500'000'000;
  EXPECT_THAT(judge_machine(ranks, {.ranks = 2}), IsEmpty());
  ranks[1].driver = "550";
  EXPECT_EQ(judge_machine(ranks, {.ranks = 2}).at(0).standing, Standing::no_go);
}

StorageOfRank good_storage(int rank) {
  StorageOfRank good;
  good.races = 2;
  good.won = {rank};
  good.renames = rank == 0 ? 100 : 0;
  good.reads = rank == 0 ? 0 : 1'000;
  if (rank == 0) good.file_syncs = good.directory_syncs = {1, 2, 3};
  if (rank > 0) good.seen_by_stat = good.seen_by_list = good.seen_grown = {0.1};
  good.free_bytes = 1'000'000'000;
  good.free_inodes = 1'000'000;
  good.moved = 1'000'000;
  good.write_seconds = good.read_seconds = 0.01;
  return good;
}

StorageNeeds storage_needs() {
  return {.where = "/data", .ranks = 2, .checkpoint = 10'000'000, .files = 20, .kept = 2};
}

TEST(JudgeStorage, a_good_one_has_no_finding) {
  EXPECT_THAT(judge_storage({good_storage(0), good_storage(1)}, storage_needs()), IsEmpty());
}

TEST(JudgeStorage, a_name_given_to_nobody_and_one_older_read_are_no_gos) {
  std::vector<StorageOfRank> ranks = {good_storage(0), good_storage(1)};
  ranks[1].won.clear();
  EXPECT_THAT(judge_storage(ranks, storage_needs()).at(0).measured, HasSubstr("1 to none"));
  ranks = {good_storage(0), good_storage(1)};
  ranks[1].backwards = 1;
  EXPECT_THAT(judge_storage(ranks, storage_needs()).at(0).needed, HasSubstr("atomic rename"));
}

TEST(JudgeStorage, late_sight_is_a_note_and_none_a_no_go) {
  std::vector<StorageOfRank> ranks = {good_storage(0), good_storage(1)};
  ranks[1].seen_by_list = {250};
  EXPECT_EQ(judge_storage(ranks, storage_needs()).at(0).standing, Standing::note);
  ranks[1].seen_by_list = {-1};
  EXPECT_EQ(judge_storage(ranks, storage_needs()).at(0).standing, Standing::no_go);
}

TEST(JudgeStorage, space_and_inodes_are_for_one_checkpoint_more_than_are_kept) {
  std::vector<StorageOfRank> ranks = {good_storage(0), good_storage(1)};
  ranks[0].free_bytes = 3 * (10'000'000 + (1 << 20));
  EXPECT_THAT(judge_storage(ranks, storage_needs()), IsEmpty());
  --ranks[0].free_bytes;
  EXPECT_EQ(judge_storage(ranks, storage_needs()).at(0).standing, Standing::no_go);
  ranks[0].free_bytes = 1'000'000'000;
  ranks[0].free_inodes = 59;
  EXPECT_THAT(judge_storage(ranks, storage_needs()).at(0).measured, HasSubstr("59 free inodes"));
}

TEST(JudgeStorage, a_save_is_held_against_the_interval_that_was_given) {
  std::vector<StorageOfRank> ranks = {good_storage(0), good_storage(1)};
  StorageNeeds needs = storage_needs();
  needs.interval_seconds = 0.01;  // a save takes about 0.1 s
  EXPECT_THAT(judge_storage(ranks, needs), IsEmpty());
  needs.interval_given = true;
  EXPECT_EQ(judge_storage(ranks, needs).at(0).standing, Standing::no_go);
  needs.interval_seconds = 0.5;
  EXPECT_EQ(judge_storage(ranks, needs).at(0).standing, Standing::note);
  needs.interval_seconds = 60;
  EXPECT_THAT(judge_storage(ranks, needs), IsEmpty());
}

TEST(JudgeMemory, ranks_of_a_host_share_it) {
  const std::vector<MachineOfRank> ranks = {good_machine(), good_machine()};
  EXPECT_THAT(judge_memory(ranks, {.of_rank = {30'000'000'000, 30'000'000'000}}), IsEmpty());
  const auto findings = judge_memory(ranks, {.of_rank = {30'000'000'000, 30'000'000'001}});
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].standing, Standing::no_go);
}

TEST(Fit, latency_and_bandwidth_are_told_apart) {
  std::vector<TimedSize> points;
  for (const double bytes : {64.0, 65'536.0, 1'048'576.0}) points.push_back({bytes, 20e-6 + bytes / 1e9});
  const AlphaBeta line = fit(points);
  EXPECT_NEAR(line.latency, 20e-6, 1e-9);
  EXPECT_NEAR(line.bandwidth, 1e9, 1e3);
  EXPECT_EQ(fit({{64, 1e-5}}).bandwidth, 0);
}

LinkMeasured link(int a, int b, double latency, double bandwidth) {
  return {.a = a, .b = b, .one_way = {{64, latency + 64 / bandwidth}, {1e6, latency + 1e6 / bandwidth}}};
}

TEST(JudgeExchange, a_rank_all_of_whose_links_are_slow_is_named) {
  ExchangeOfRank rank;
  for (int a = 0; a < 5; ++a) {
    for (int b = a + 1; b < 5; ++b) rank.links.push_back(link(a, b, 20e-6, a == 2 || b == 2 ? 1e8 : 1e9));
  }
  const auto findings = judge_exchange({rank});
  ASSERT_THAT(findings, SizeIs(4));
  EXPECT_THAT(findings[0].where, HasSubstr("all links of rank 2"));
}

TEST(JudgeExchange, links_are_compared_with_their_kind) {
  ExchangeOfRank rank;
  for (int i = 0; i < 3; ++i) rank.links.push_back(link(0, i + 1, 2e-6, 1e10));
  for (int i = 0; i < 3; ++i) {
    rank.links.push_back(link(4, i + 5, 2e-3, 1e9));
    rank.links.back().in_node = false;
  }
  EXPECT_THAT(judge_exchange({rank}), IsEmpty());
}

TEST(JudgeExchange, where_no_link_can_be_compared_it_says_so) {
  ExchangeOfRank rank;
  rank.links = {link(0, 1, 3e-3, 1e6)};
  const auto findings = judge_exchange({rank});
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].standing, Standing::note);
  EXPECT_THAT(findings[0].measured, HasSubstr("1 link: none can be called slow"));
}

Json restored(const std::string& found, int tensors) {
  return {{"audit", {{"damaged", false}, {"problems", Json::array()}, {"newest", "6-1-1"}}},
          {"found", found},
          {"tensors", tensors},
          {"runs", 0},
          {"different", Json::array()}};
}

TEST(JudgeRestore, every_rank_must_resume_from_the_newest_and_compare_it) {
  const auto judged = [](const Json& second) {
    CheckResult result;
    judge_restore({restored("6-1-1", 5), second}, "/data", result);
    return result;
  };
  EXPECT_THAT(judged(restored("6-1-1", 5)).findings, IsEmpty());
  ASSERT_THAT(judged(restored("4-1-1", 5)).findings, SizeIs(1));
  EXPECT_EQ(judged(restored("4-1-1", 5)).standing(), Standing::no_go);
  EXPECT_THAT(judged(restored("4-1-1", 5)).findings[0].measured, HasSubstr("4-1-1"));
  EXPECT_EQ(judged(restored("nothing", 0)).findings.at(0).where, "/data, rank 1");
  CheckResult none;
  judge_restore({restored("6-1-1", 0)}, "/data", none);
  EXPECT_EQ(none.standing(), Standing::no_go);
}

TEST(JudgeStragglers, only_a_rank_that_is_slow_in_every_look_is_blamed) {
  const Rounds slow = {{1, 1, 3, 1}, {1, 1, 2.5, 1}, {1, 1, 4, 1}};
  ASSERT_THAT(suspects(WorkOfRank::compute, slow), SizeIs(1));
  EXPECT_THAT(suspects(WorkOfRank::compute, {{1, 1, 3, 1}, {1, 1, 1.5, 1}, {1, 1, 4, 1}}), IsEmpty());
  StragglerMeasured measured;
  measured.suspicions = suspects(WorkOfRank::compute, slow);
  EXPECT_THAT(judge_stragglers(measured), IsEmpty());  // not looked at again
  measured.suspicions[0].again = {{3, 1}, {2.2, 1}};
  ASSERT_THAT(judge_stragglers(measured), SizeIs(1));
  EXPECT_EQ(judge_stragglers(measured)[0].where, "rank 2");
  measured.suspicions[0].again.push_back({1.9, 1});
  EXPECT_THAT(judge_stragglers(measured), IsEmpty());
}

TEST(JudgeStragglers, two_slow_ranks_of_four_are_both_suspected) {
  EXPECT_THAT(suspects(WorkOfRank::input, {{1, 3, 3, 1}, {1, 4, 3, 1}, {1, 3, 4, 1}}), SizeIs(2));
}

TEST(JudgeStragglers, the_false_alarm_rate_holds_for_every_number_of_ranks) {
  for (const int ranks : {2, 3, 4, 8, 64, 1024}) {
    const int looks = straggler_rounds + confirmations(ranks);
    EXPECT_LE(ranks / std::pow(2.0, looks), false_alarms) << ranks;
  }
}

TEST(Shrunken, a_job_keeps_its_lanes_and_becomes_small) {
  Job job;
  job.lanes = {.dp = 4, .tp = 2, .cp = 2};
  job.model = {.layers = 32, .width = 1024, .heads = 16, .sequence = 512};
  job.steps = 10'000;
  const Layout layout{.dp = 2, .tp = 2, .pp = 2};
  const Job small = shrunken(job, layout);
  EXPECT_THAT(mistakes_in(small), IsEmpty());
  EXPECT_THAT(mistakes_in(layout, small), IsEmpty());
  EXPECT_EQ(small.lanes, job.lanes);
  EXPECT_EQ(small.model.layers, 2);
  EXPECT_LE(small.model.width, 16);
  EXPECT_LE(small.steps, 6);
}

TEST(ExitCode, a_no_go_is_one_whatever_could_not_be_told) {
  const auto with = [](Standing standing) { return CheckResult{.name = "x", .findings = {{.standing = standing}}}; };
  EXPECT_EQ(exit_code_of({with(Standing::note), with(Standing::skipped)}), 0);
  EXPECT_EQ(exit_code_of({with(Standing::unknown), with(Standing::go)}), 4);
  EXPECT_EQ(exit_code_of({with(Standing::unknown), with(Standing::no_go)}), 2);
}

TEST(Load, a_link_that_is_slow_in_one_round_of_many_is_a_note_and_in_a_third_of_them_a_no_go) {
  const Finding slow{.standing = Standing::no_go, .measured = "250 MB/s", .where = "link 1-2", .of_speed = true};
  SpeedTally tally;
  tally.add(slow);
  EXPECT_EQ(tally.findings(1).front().standing, Standing::no_go);
  EXPECT_EQ(tally.findings(3).front().standing, Standing::no_go);
  EXPECT_EQ(tally.findings(19).front().standing, Standing::note);
  EXPECT_EQ(tally.findings(19).front().where, "link 1-2, in 1 of 19 rounds of the load");
  for (int i = 0; i < 6; ++i) tally.add(slow);
  EXPECT_EQ(tally.findings(19).front().standing, Standing::no_go);
}

}  // namespace
}  // namespace firedrill::preflight

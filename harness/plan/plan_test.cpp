#include "harness/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <fstream>

namespace firedrill {
namespace {

using testing::HasSubstr;

// A plan in which nothing that is written has its default.
Plan a_plan() {
  Plan plan;
  plan.scenario = "quickstart";
  plan.scenario_path = "scenarios/quick \"start\".yaml";
  plan.job = {
      .name = "nano",
      .model = {.layers = 2, .width = 32, .heads = 4, .hidden = 88, .sequence = 8, .dropout = 0.1},
      .lanes = {.dp = 4},
      .data = {.corpus = "/tmp/some text", .shuffle = false, .last_batch = LastBatch::pad, .held_out = 0.25},
      .batch = {.lane_micro_batch = 3, .accumulation = 2},
      .optimizer = {.lr = 1.0 / 3.0,
                    .warmup_steps = 4,
                    .decay = Decay::cosine,
                    .lr_min_ratio = 0.2,
                    .weight_decay = 0.1,
                    .beta1 = 0.8,
                    .beta2 = 0.99,
                    .epsilon = 1e-7,
                    .clip = 1.5},
      .precision = {.scaler = {.dynamic = true, .initial_scale = 8, .growth_interval = 3}},
      .numerics = Numerics::native,
      .steps = 7,
      .checkpoint = {.every = 3, .keep_validated = 4, .on_error = OnError::continue_training, .failures_max = 2},
      .cluster = {.ranks_per_node = 2,
                  .file_sync = std::chrono::nanoseconds(1234567),
                  .deadline = std::chrono::seconds(3)},
      .seed = 18446744073709551615ULL};
  plan.run_id = run_id_of(plan.job);
  plan.layout = {.dp = 2};
  plan.world = WorldKind::process;
  plan.faults = {{.kind = FaultKind::kill_node,
                  .at = {.attempt = std::nullopt,
                         .rank = 1,
                         .step = 3,
                         .phase = Phase::save,
                         .op = SeamOp::file,
                         .file_op = FileOp::write,
                         .path = "shards/*",
                         .nth = 2,
                         .when = When::after},
                  .times = 2,
                  .lose_unsynced_data = true,
                  .lose_unsynced_names = true,
                  .may_not_fire = true},
                 {.kind = FaultKind::kill, .at = {.attempt = 3, .rank = 0, .op = SeamOp::send}}};
  plan.recovery.budget = 9;
  plan.expect = {.kind = Expectation::Kind::fail, .property = "one_provenance"};
  plan.seed = 18446744073709551614ULL;
  plan.mutant = "protocol_x";
  plan.accounting = true;
  plan.job.cluster.head = {.forward = Duration{0}};
  plan.job.cluster.message = Duration{7};
  plan.corpus_digest = digest_of("text");
  plan.settings = {"job.steps=7", "layout.dp=2"};
  return plan;
}

TEST(Plan, WhatIsWrittenIsReadBackWithoutLoss) {
  for (const Plan& plan : {a_plan(), Plan{.run_id = "x", .job = {.name = "j"}}}) {
    const std::string json = to_json(plan);
    const Result<Plan> again = plan_from_json(json, "plan.json");
    ASSERT_TRUE(again) << describe(again.error());
    EXPECT_EQ(to_json(*again), json);
    EXPECT_EQ(digest_of_job(again->job), digest_of_job(plan.job));
    EXPECT_EQ(again->job.name, plan.job.name);
    EXPECT_EQ(again->job.data, plan.job.data);
    EXPECT_EQ(again->job.checkpoint, plan.job.checkpoint);
    EXPECT_EQ(again->job.cluster.file_sync, plan.job.cluster.file_sync);
    EXPECT_EQ(again->job.cluster.bandwidth_in_node, plan.job.cluster.bandwidth_in_node);
    EXPECT_EQ(again->layout, plan.layout);
    EXPECT_EQ(again->world, plan.world);
    EXPECT_EQ(again->recovery, plan.recovery);
    EXPECT_EQ(again->expect, plan.expect);
    EXPECT_EQ(again->seed, plan.seed);
    EXPECT_EQ(again->mutant, plan.mutant);
    EXPECT_EQ(again->accounting, plan.accounting);
    EXPECT_EQ(again->job.cluster.head, plan.job.cluster.head);
    EXPECT_EQ(again->job.cluster.message, plan.job.cluster.message);
    EXPECT_EQ(again->corpus_digest, plan.corpus_digest);
    EXPECT_EQ(again->settings, plan.settings);
    ASSERT_EQ(again->faults.size(), plan.faults.size());
    for (std::size_t i = 0; i < plan.faults.size(); ++i) {
      EXPECT_EQ(describe(again->faults[i]), describe(plan.faults[i]));
      EXPECT_EQ(again->faults[i].times, plan.faults[i].times);
      EXPECT_EQ(again->faults[i].at.attempt, plan.faults[i].at.attempt);
      EXPECT_EQ(again->faults[i].at.path, plan.faults[i].at.path);
      EXPECT_EQ(again->faults[i].lose_unsynced_data, plan.faults[i].lose_unsynced_data);
      EXPECT_EQ(again->faults[i].may_not_fire, plan.faults[i].may_not_fire);
    }
  }
}

// Any fault of any kind, with options that its kind has and such that it has not.
FaultSpec drawn_fault() {
  FaultSpec fault{.kind = static_cast<FaultKind>(*rc::gen::inRange(0, fault_kind_count))};
  fault.at.attempt = *rc::gen::element<std::optional<int>>(std::nullopt, 1, 4);
  fault.at.rank = *rc::gen::inRange(0, 100);
  if (*rc::gen::element(false, true)) fault.at.step = *rc::gen::inRange<std::int64_t>(0, 1000);
  if (*rc::gen::element(false, true)) fault.at.phase = static_cast<Phase>(*rc::gen::inRange(1, phase_count));
  const int op = *rc::gen::inRange(0, file_op_count + seam_op_count);
  if (op > 0 && op < seam_op_count) fault.at.op = static_cast<SeamOp>(op);
  if (op >= seam_op_count) {
    fault.at.op = SeamOp::file;
    fault.at.file_op = static_cast<FileOp>(op - seam_op_count);
  }
  fault.at.path = *rc::gen::element<std::string>("", "shards/*", "a \"b\"?");
  fault.at.nth = *rc::gen::inRange(1, 50);
  fault.at.when = *rc::gen::element(When::before, When::after);
  fault.times = *rc::gen::inRange(0, 9);
  fault.may_not_fire = *rc::gen::element(false, true);
  fault.delay = Duration{*rc::gen::inRange<std::int64_t>(1, 1'000'000'000'000)};
  fault.lasts = Duration{*rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000)};
  fault.target = static_cast<Target>(*rc::gen::inRange(0, 4));
  fault.damage = static_cast<PayloadDamage>(*rc::gen::inRange(0, 3));
  fault.peer = *rc::gen::element<std::optional<int>>(std::nullopt, 0, 7);
  fault.group = *rc::gen::element<std::string>("", "dp", "tp");
  fault.code = *rc::gen::inRange(0, 256);
  return fault;
}

TEST(Plan, AnyPlanIsReadBackWithoutLoss) {
  EXPECT_TRUE(rc::check("plans come back", [] {
    Plan plan = a_plan();
    plan.seed = *rc::gen::arbitrary<std::uint64_t>();
    plan.job.seed = *rc::gen::arbitrary<std::uint64_t>();
    plan.job.optimizer.lr = static_cast<double>(*rc::gen::inRange(1, 1'000'000)) / 7;
    plan.layout = {.dp = *rc::gen::inRange(1, 9), .tp = *rc::gen::inRange(1, 9), .zero = *rc::gen::inRange(0, 4)};
    plan.layout.guard = *rc::gen::element(Guard::off, Guard::record, Guard::check);
    if (*rc::gen::element(false, true)) plan.recovery.layout = Layout{.cp = *rc::gen::inRange(1, 5)};
    plan.recovery.policy = *rc::gen::element(RecoveryPolicy::restart, RecoveryPolicy::spare, RecoveryPolicy::fewer);
    plan.faults.clear();
    for (int faults = *rc::gen::inRange(0, 6); faults > 0; --faults) plan.faults.push_back(drawn_fault());
    const std::string json = to_json(plan);
    const Result<Plan> again = plan_from_json(json, "plan.json");
    RC_ASSERT(again.ok());
    RC_ASSERT(to_json(*again) == json);
    RC_ASSERT(again->faults.size() == plan.faults.size());
    RC_ASSERT(again->recovery == plan.recovery && again->layout == plan.layout && again->seed == plan.seed);
    for (std::size_t i = 0; i < plan.faults.size(); ++i) {  // options that the kind has not do not come back
      const FaultSpec& mine = plan.faults[i];
      const FaultSpec& read = again->faults[i];
      RC_ASSERT(read.kind == mine.kind && read.times == mine.times && read.may_not_fire == mine.may_not_fire);
      RC_ASSERT(read.at.attempt == mine.at.attempt && read.at.rank == mine.at.rank && read.at.step == mine.at.step);
      RC_ASSERT(read.at.phase == mine.at.phase && read.at.op == mine.at.op && read.at.file_op == mine.at.file_op);
      RC_ASSERT(read.at.path == mine.at.path && read.at.nth == mine.at.nth && read.at.when == mine.at.when);
    }
  }));
}

TEST(Plan, TheRunIdIsTheJobsAndNotTheSeeds) {
  Scenario scenario;
  scenario.path = "a/quickstart.yaml";
  scenario.job.name = "nano";
  const Plan one = make_plan(scenario, {.seed = 1});
  const Plan two = make_plan(scenario, {.seed = 2});
  EXPECT_EQ(one.run_id, two.run_id);
  EXPECT_EQ(one.run_id, "nano-" + digest_of_job(scenario.job).hex().substr(0, 8));
  scenario.job.steps = 5;
  EXPECT_NE(make_plan(scenario, {.seed = 1}).run_id, one.run_id);
}

TEST(Plan, TheCommandLinesSeedWinsOverTheScenarios) {
  Scenario scenario;
  EXPECT_EQ(make_plan(scenario).seed, 1U);
  scenario.seed = 5;
  EXPECT_EQ(make_plan(scenario).seed, 5U);
  EXPECT_EQ(make_plan(scenario, {.seed = 6}).seed, 6U);
}

TEST(Plan, ADamagedPlanIsAnErrorThatNamesWhatIsWrong) {
  const std::string json = to_json(a_plan());
  EXPECT_TRUE(plan_from_json(json.substr(0, json.size() / 2), "p").failed_with(Code::invalid_input));
  EXPECT_TRUE(plan_from_json("[1]", "p").failed_with(Code::invalid_input));
  std::string other = json;
  other.replace(other.find("\"steps\": 7"), 10, "\"steps\": \"x\"");
  EXPECT_THAT(plan_from_json(other, "p").error().message, HasSubstr("p: job.steps must be a whole number"));
  EXPECT_TRUE(read_plan("/nonexistent/plan.json").failed_with(Code::not_found));
}

}  // namespace
}  // namespace firedrill

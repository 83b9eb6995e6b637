#include "harness/scenario/scenario.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "engine/base/rng.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

const std::string nano = R"(schema: firedrill.job/1
model: {layers: 1, width: 16, heads: 2, vocabulary: bytes, sequence: 16, dropout: 0.1}
lanes: {dp: 4, tp: 1, cp: 1}
data: {corpus: text/corpus, shuffle: true, last_batch: keep}
batch: {lane_micro_batch: 2, accumulation: 1}
optimizer: {kind: adamw, lr: 0.003, warmup_steps: 4, decay: cosine, weight_decay: 0.1, clip: 1.0}
precision: {parameters: fp32, scaler: off}
steps: 12
checkpoint: {every: 2, keep_validated: 2, mode: sync, catalog: files, on_error: stop}
cluster: {ranks_per_node: 2}
seed: 1
)";

// A folder of its own with a job in it, for scenarios that name one.
class ScenarioFiles : public testing::Test {
 protected:
  ScenarioFiles() {
    std::string name = (fs::temp_directory_path() / "firedrill-scenario-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    fs::create_directories(folder_ / "jobs");
    write("jobs/nano.yaml", nano);
  }
  ~ScenarioFiles() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  // Mistakes without the folder in front.
  std::vector<std::string> mistakes_of(const std::string& text, const LoadOptions& options = {}) {
    std::vector<std::string> mistakes = parse_scenario(text, folder_ / "s.yaml", options).mistakes;
    for (std::string& mistake : mistakes) {
      const std::size_t at = mistake.find(folder_.string() + "/");
      if (at == 0) mistake.erase(0, folder_.string().size() + 1);
    }
    return mistakes;
  }
  Scenario good(const std::string& text, const LoadOptions& options = {}) {
    Loaded<Scenario> loaded = parse_scenario(text, folder_ / "s.yaml", options);
    EXPECT_THAT(loaded.mistakes, ElementsAre());
    return loaded ? *loaded : Scenario{};
  }

  fs::path folder_;
};

const std::string quickstart = R"(schema: firedrill.scenario/1
job: jobs/nano.yaml
layout: {dp: 4}
world: sim
faults:
  - {kill: {}, at: {rank: 2, step: 3, phase: backward, nth: 1}}
  - {kill: {}, at: {attempt: any, rank: 0, step: 6, phase: commit, op: rename, when: before}}
  - {kill_node: {lose_unsynced_data: true}, at: {attempt: 3, rank: 1, step: 8, phase: save, op: write, path: "*/m*"}}
  - {io_error: {}, at: {rank: 3, step: 4, phase: save, op: write, nth: 2, when: before}, times: 2, may_not_fire: true}
recovery: {policy: restart, budget: 5}
expect: pass
)";

TEST_F(ScenarioFiles, ReadsWhatTheQuickStartSays) {
  const Scenario scenario = good(quickstart);
  EXPECT_EQ(scenario.job.name, "nano");
  EXPECT_EQ(scenario.job.steps, 12);
  EXPECT_EQ(scenario.job.data.corpus, (folder_ / "jobs/text/corpus").string());
  EXPECT_EQ(scenario.layout.dp, 4);
  EXPECT_EQ(scenario.recovery.budget, 5);
  ASSERT_THAT(scenario.faults, SizeIs(4));
  EXPECT_EQ(scenario.faults[0].kind, FaultKind::kill);
  EXPECT_EQ(scenario.faults[0].at.attempt, 1);
  EXPECT_EQ(scenario.faults[0].at.phase, Phase::backward);
  EXPECT_EQ(scenario.faults[0].line, 6);
  EXPECT_EQ(scenario.faults[1].at.attempt, std::nullopt);
  EXPECT_EQ(scenario.faults[1].at.op, SeamOp::file);
  EXPECT_EQ(scenario.faults[1].at.file_op, FileOp::rename);
  EXPECT_TRUE(scenario.faults[2].lose_unsynced_data);
  EXPECT_FALSE(scenario.faults[2].lose_unsynced_names);
  EXPECT_EQ(scenario.faults[2].at.path, "*/m*");
  EXPECT_EQ(scenario.faults[3].times, 2);
  EXPECT_TRUE(scenario.faults[3].may_not_fire);
}

TEST_F(ScenarioFiles, EveryMistakeOfAFileIsReportedAtOnceWithItsPlace) {
  const auto mistakes = mistakes_of(R"(schema: firedrill.scenario/1
job: jobs/nano.yaml
layuot: {dp: 4}
world: simm
faults:
  - {kill: {}, at: {rank: two, step: 3, phase: backwards}}
  - {kil: {}, at: {rank: 1}}
  - {kill: {}, io_error: {}, at: {rank: 1, op: wirte}}
  - {kill: {}}
recovery: {policy: restart, budget: 5, budget: 6}
expect: fail
)");
  ASSERT_THAT(mistakes, SizeIs(10));
  EXPECT_EQ(mistakes[0], "s.yaml:3:1: unknown key `layuot`: did you mean `layout`?");
  EXPECT_EQ(mistakes[1], "s.yaml:4:8: world must be one of sim, process (did you mean `sim`?), not `simm`");
  EXPECT_EQ(mistakes[2], "s.yaml:6:27: faults[0].at.rank must be a whole number, not `two`");
  EXPECT_THAT(mistakes[3], StartsWith("s.yaml:6:48: faults[0].at.phase must be one of none, input"));
  EXPECT_THAT(mistakes[3], HasSubstr("did you mean `backward`?"));
  EXPECT_EQ(mistakes[4], "s.yaml:7:6: unknown key `kil` in faults[1]: did you mean `kill`?");
  EXPECT_THAT(mistakes[5], StartsWith("s.yaml:8:5: faults[2] names 2 kinds of fault"));
  EXPECT_THAT(mistakes[6], HasSubstr("s.yaml:8:48: faults[2].at.op must be one of create, open"));
  EXPECT_EQ(mistakes[7], "s.yaml:9:5: missing key `at` in faults[3]");
  EXPECT_EQ(mistakes[8], "s.yaml:10:40: duplicate key `budget`: it is already given in line 10");
  EXPECT_THAT(mistakes[9], StartsWith("s.yaml:11:9: `fail` needs the property"));
}

TEST_F(ScenarioFiles, MistakesOfTheJobComeWithThoseOfTheScenario) {
  write("jobs/bad.yaml",
        "schema: firedrill.job/1\nmodel: {lyers: 1, width: 16, heads: 3, sequence: 16}\n"
        "lanes: {dp: 4}\nsteps: -1\noptimizer: {lr: -1}\n");
  const auto mistakes = mistakes_of("schema: firedrill.scenario/1\njob: jobs/bad.yaml\nworld: 3\n");
  ASSERT_THAT(mistakes, SizeIs(5));
  EXPECT_THAT(mistakes[0], StartsWith("s.yaml:3:8: world must be"));
  EXPECT_EQ(mistakes[1], "jobs/bad.yaml:2:8: missing key `layers` in model");
  EXPECT_EQ(mistakes[2], "jobs/bad.yaml:2:9: unknown key `lyers` in model: did you mean `layers`?");
  EXPECT_EQ(mistakes[3],
            "jobs/bad.yaml:4:8: steps is -1: give 1 to 10000000, or 0 to let ranks meet and train nothing");
  EXPECT_THAT(mistakes[4], StartsWith("jobs/bad.yaml:5:17: optimizer.lr is -1"));
}

TEST_F(ScenarioFiles, WhatCannotHappenIsRefusedWithItsLine) {
  const auto layout = mistakes_of("schema: firedrill.scenario/1\njob: jobs/nano.yaml\nlayout:\n  dp: 3\n");
  ASSERT_THAT(layout, SizeIs(1));
  EXPECT_THAT(layout[0], StartsWith("s.yaml:4:7: layout.dp is 3 and does not divide the job's 4 dp lanes"));

  const auto faults = mistakes_of(R"(schema: firedrill.scenario/1
job: jobs/nano.yaml
layout: {dp: 4}
faults:
  - {kill: {}, at: {rank: 9, step: 3}}
  - {kill: {}, at: {rank: 1, step: 40}}
)");
  ASSERT_THAT(faults, SizeIs(2));
  EXPECT_THAT(faults[0], StartsWith("s.yaml:5:"));
  EXPECT_THAT(faults[0], HasSubstr("9"));
  EXPECT_THAT(faults[1], StartsWith("s.yaml:6:"));
  EXPECT_THAT(faults[1], HasSubstr("40"));
}

const std::string three_kills_two_restarts = R"(schema: firedrill.scenario/1
job: jobs/nano.yaml
layout: {dp: 4}
faults:
  - {kill: {}, at: {attempt: 1, rank: 0, step: 3}}
  - {kill: {}, at: {attempt: 2, rank: 0, step: 3}}
  - {kill: {}, at: {attempt: 3, rank: 0, step: 3}}
recovery: {budget: 2}
)";

TEST_F(ScenarioFiles, APlanBeyondTheBudgetIsRefusedUnlessThatIsExpected) {
  EXPECT_THAT(mistakes_of(three_kills_two_restarts), SizeIs(1));
  const Scenario refused = good(three_kills_two_restarts + "expect: refuse\n");
  EXPECT_THAT(refused.refusals, SizeIs(1));
  // Liveness and fail lift the budget.
  EXPECT_THAT(good(three_kills_two_restarts + "expect: liveness\n").refusals, SizeIs(0));
  EXPECT_THAT(good(three_kills_two_restarts + "expect: {fail: one_provenance}\n").refusals, SizeIs(0));
}

TEST_F(ScenarioFiles, AFaultOfAnAttemptThatNeverStartsIsRefusedAtItsLine) {
  EXPECT_THAT(mistakes_of("schema: firedrill.scenario/1\njob: jobs/nano.yaml\nlayout: {dp: 4}\nfaults:\n"
                          "  - {kill: {}, at: {attempt: 2, rank: 0, step: 3}}\n"),
              ElementsAre(testing::AllOf(StartsWith("s.yaml:5:"), HasSubstr("waits for attempt 2"))));
}

TEST_F(ScenarioFiles, MoreFaultsThanARankCanHoldAreRefusedWhateverIsExpected) {
  std::string text = "schema: firedrill.scenario/1\njob: jobs/nano.yaml\nlayout: {dp: 4}\nexpect: liveness\nfaults:\n";
  for (int i = 0; i < 65; ++i) text += "  - {kill: {}, at: {rank: 0, step: 3}}\n";
  EXPECT_THAT(mistakes_of(text), ElementsAre(testing::AllOf(StartsWith("s.yaml:6:"), HasSubstr("one of 65"))));
}

TEST_F(ScenarioFiles, APropertyThatDoesNotExistIsAMistake) {
  const LoadOptions known{.set = {}, .properties = {"one_provenance", "faults_fired"}, .world = {}};
  const std::string text = "schema: firedrill.scenario/1\njob: jobs/nano.yaml\nexpect: {fail: one_provnance}\n";
  EXPECT_THAT(mistakes_of(text, known),
              ElementsAre("s.yaml:3:16: there is no property `one_provnance`: did you mean `one_provenance`?"));
}

TEST_F(ScenarioFiles, TextThatIsNoScenarioIsNamedAsWhatItIs) {
  EXPECT_THAT(mistakes_of(""), ElementsAre(HasSubstr("s.yaml:1:1: the file is empty")));
  EXPECT_THAT(mistakes_of("# only a comment\n"), ElementsAre(HasSubstr("the file is empty")));
  EXPECT_THAT(mistakes_of("- a\n- b\n"), ElementsAre("s.yaml:1:1: a scenario must be a mapping, not a sequence"));
  EXPECT_THAT(mistakes_of("hello\n"), ElementsAre("s.yaml:1:1: a scenario must be a mapping, not `hello`"));
  EXPECT_THAT(mistakes_of("a: [1\nb: 2\n"), ElementsAre(HasSubstr("s.yaml:2:2: not YAML from here")));
  EXPECT_THAT(mistakes_of("layout:\n\tdp: 4\nworld:\n\tx: 1\n"),
              ElementsAre("s.yaml:2:1: a tab in the indentation: indent with spaces",
                          "s.yaml:4:1: a tab in the indentation: indent with spaces"));
  EXPECT_THAT(mistakes_of(std::string(2 << 20, '#')), ElementsAre(HasSubstr("2097152 bytes are too many")));
  EXPECT_THAT(mistakes_of(std::string("a: b\0c", 6)), ElementsAre(HasSubstr("zero byte")));
  EXPECT_THAT(mistakes_of(std::string(3000, '[')), ElementsAre(HasSubstr("not YAML from here")));
  EXPECT_THAT(mistakes_of(nano), testing::Contains(HasSubstr("schema must be `firedrill.scenario/1`, not "
                                                             "`firedrill.job/1`")));
}

TEST_F(ScenarioFiles, AliasesAreRefusedSoThatASmallFileCannotMeanAHugeOne) {
  std::string bomb = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 40; ++i) bomb += fmt::format("a{0}: &a{0} [*a{1}, *a{1}]\n", i, i - 1);
  EXPECT_THAT(mistakes_of(bomb),
              testing::Contains("s.yaml:2:10: an alias (`*name`) is not supported: write the value out"));
}

TEST_F(ScenarioFiles, AMissingJobIsAMistakeWhereItIsNamed) {
  EXPECT_THAT(mistakes_of("schema: firedrill.scenario/1\njob: jobs/none.yaml\n"),
              ElementsAre(testing::AllOf(StartsWith("s.yaml:2:6: job "), HasSubstr("there is no such file"))));
  EXPECT_THAT(load_scenario(folder_ / "none.yaml").mistakes, ElementsAre(HasSubstr("there is no such file")));
  EXPECT_THAT(load_scenario(folder_).mistakes, ElementsAre(HasSubstr("this is a directory")));
}

TEST_F(ScenarioFiles, SettingsChangeWhatIsReadAndAreCheckedLikeIt) {
  const Scenario scenario = good(quickstart, {.set = {"job.steps=10", "layout.dp=4", "recovery.budget=7",
                                                      "job.checkpoint.every=1", "faults.0.at.step=4"}});
  EXPECT_EQ(scenario.job.steps, 10);
  EXPECT_EQ(scenario.job.checkpoint.every, 1);
  EXPECT_EQ(scenario.recovery.budget, 7);
  ASSERT_THAT(scenario.faults, SizeIs(4));
  EXPECT_EQ(scenario.faults[0].at.step, 4);

  const auto mistakes =
      mistakes_of(quickstart, {.set = {"job.stepz=8", "layout.dp=x", "nothing", "faults.9.at.rank=1", "world.x=1"}});
  EXPECT_THAT(mistakes, testing::UnorderedElementsAre("--set job.stepz=8: unknown key `stepz`: did you mean `steps`?",
                                                      "--set layout.dp=x: layout.dp must be a whole number, not `x`",
                                                      "--set nothing: give path=value, as in job.steps=8",
                                                      HasSubstr("`9` in `faults.9.at.rank` must be a number below 4"),
                                                      HasSubstr("`world.x` names nothing")));
}

TEST_F(ScenarioFiles, AScenarioMaySetFieldsOfItsJobAndTheCommandLineWins) {
  const std::string text = "schema: firedrill.scenario/1\njob: jobs/nano.yaml\nset: {job.steps: 4, job.seed: 3}\n";
  EXPECT_EQ(good(text).job.steps, 4);
  EXPECT_EQ(good(text).job.seed, 3U);
  EXPECT_EQ(good(text, {.set = {"job.steps=6"}}).job.steps, 6);
  EXPECT_THAT(mistakes_of("schema: firedrill.scenario/1\njob: jobs/nano.yaml\nset: {layout.dp: 4, job.steps: no}\n"),
              ElementsAre(StartsWith("s.yaml:3:7: `layout.dp` in set: only fields of the job"),
                          "s.yaml:3:32: steps must be a whole number, not `no`"));
}

TEST_F(ScenarioFiles, ParsingWhatWasPrintedGivesTheSameScenario) {
  for (const std::string& text :
       {quickstart, three_kills_two_restarts + "expect: refuse\nseed: 18446744073709551615\n",
        std::string("schema: firedrill.scenario/1\njob: jobs/nano.yaml\nset: {job.steps: 4}\nworld: process\n"
                    "expect: {fail: one_provenance}\n"),
        std::string("schema: firedrill.scenario/1\njob: jobs/nano.yaml\n"
                    "crash: {from: {attempt: 2, step: 4}, settled: true, profile: nfs, torn: false, twice: true}\n"),
        std::string("schema: firedrill.scenario/1\njob: jobs/nano.yaml\ncrash: {node_caches: true}\n"
                    "recovery: {policy: spare, spares: 2, backoff: {initial: 1s, factor: 1.5, max: 9s}}\n")}) {
    const Scenario scenario = good(text);
    const std::string printed = print(scenario, folder_);
    const Scenario again = good(printed);
    EXPECT_EQ(print(again, folder_), printed);
    EXPECT_EQ(print(again.job, folder_), print(scenario.job, folder_));
    EXPECT_EQ(again.layout, scenario.layout);
    EXPECT_EQ(again.world, scenario.world);
    EXPECT_EQ(again.recovery, scenario.recovery);
    EXPECT_EQ(again.expect, scenario.expect);
    EXPECT_EQ(again.crash, scenario.crash);
    EXPECT_EQ(again.seed, scenario.seed);
    EXPECT_EQ(again.job_settings, scenario.job_settings);
    ASSERT_EQ(again.faults.size(), scenario.faults.size());
    for (std::size_t i = 0; i < again.faults.size(); ++i) {
      EXPECT_EQ(describe(again.faults[i]), describe(scenario.faults[i]));
    }
  }
}

TEST_F(ScenarioFiles, WhereThePowerFailsIsReadWithItsDefaultsAndItsMistakesHaveAPlace) {
  const std::string head = "schema: firedrill.scenario/1\njob: jobs/nano.yaml\n";
  EXPECT_FALSE(good(head).crash);
  const CrashSpec crash = *good(head + "crash: {from: {step: 4}, profile: ext4, kill_everywhere: true}\n").crash;
  EXPECT_EQ(crash.attempt, 1);
  EXPECT_EQ(crash.step, 4);
  EXPECT_EQ(crash.profile, CrashProfile::ext4);
  EXPECT_FALSE(crash.node_caches);
  EXPECT_TRUE(good(head, {.set = {"crash.node_caches=true"}}).crash->node_caches);
  EXPECT_TRUE(crash.torn);
  EXPECT_TRUE(crash.kill_everywhere);
  EXPECT_FALSE(crash.twice);
  EXPECT_THAT(mistakes_of(head + "crash: {from: {step: -1}}\n"), ElementsAre(HasSubstr("crash.from is step -1")));
  EXPECT_THAT(mistakes_of(head + "crash: {profile: ext5}\n"), ElementsAre(HasSubstr("did you mean `ext4`?")));
}

TEST_F(ScenarioFiles, OnlyScenariosArePickedUpFromAFolder) {
  EXPECT_TRUE(is_scenario_file(write("a.yaml", "# what it shows\n\nschema: firedrill.scenario/1\n")));
  EXPECT_FALSE(is_scenario_file(write("b.yaml", nano)));
  EXPECT_FALSE(is_scenario_file(folder_ / "none.yaml"));
}

Loaded<Job> job_with(const std::string& from, const std::string& to) {
  std::string text = nano;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  return parse_job(text, "nano.yaml");
}

TEST(Job, LanesThatTheModelCannotBeCutIntoAreRefusedWithTheNumbers) {
  EXPECT_TRUE(job_with("tp: 1", "tp: 2"));
  EXPECT_THAT(job_with("tp: 1", "tp: 3").mistakes, Contains(HasSubstr("lanes.tp is 3")));
}

TEST(Job, EitherCatalogMayBeNamed) {
  const auto job = job_with("catalog: files", "catalog: rocksdb");
  ASSERT_TRUE(job);
  EXPECT_EQ(job.value->checkpoint.catalog, CatalogKind::rocksdb);
}

TEST(Job, ValuesWithUnitsAndWordsAreRead) {
  const auto job = job_with("cluster: {ranks_per_node: 2}",
                            "cluster: {ranks_per_node: 4, file_sync: 2ms, bandwidth_in_node: 80GB/s, "
                            "head: {forward: 0us}}");
  ASSERT_TRUE(job);
  EXPECT_EQ(job.value->cluster.head.forward, std::chrono::nanoseconds(0));
  EXPECT_EQ(job.value->cluster.file_sync, std::chrono::milliseconds(2));
  EXPECT_EQ(job.value->cluster.bandwidth_in_node, 80e9);
  EXPECT_THAT(job_with("cluster: {ranks_per_node: 2}", "cluster: {file_sync: 2}").mistakes,
              ElementsAre("nano.yaml:10:22: cluster.file_sync must be a duration such as 50us, 2ms or 1s, not `2`"));
  const auto continues = job_with("on_error: stop", "on_error: continue 2");
  ASSERT_TRUE(continues);
  EXPECT_EQ(continues.value->checkpoint.on_error, OnError::continue_training);
  EXPECT_EQ(continues.value->checkpoint.failures_max, 2);
  EXPECT_FALSE(job_with("on_error: stop", "on_error: continue"));
  EXPECT_FALSE(job_with("shuffle: true", "shuffle: yes"));
  EXPECT_FALSE(job_with("steps: 12", "steps: \"12\""));
  EXPECT_FALSE(job_with("steps: 12", "steps: 99999999999"));
  EXPECT_FALSE(job_with("lr: 0.003", "lr: nan"));
  EXPECT_EQ(job_with("last_batch: keep", "last_batch: drop")->data.last_batch, LastBatch::drop);
  EXPECT_EQ(job_with("last_batch: keep", "last_batch: pad")->data.last_batch, LastBatch::pad);
  EXPECT_EQ(job_with("decay: cosine", "decay: constant")->optimizer.decay, Decay::constant);
  EXPECT_FALSE(job_with("seed: 1", "numerics: native")) << "no numerics but the pinned ones are run";
  const auto scaler = job_with("scaler: off", "scaler: {growth_interval: 3}");
  ASSERT_TRUE(scaler);
  EXPECT_TRUE(scaler.value->precision.scaler.dynamic);
}

TEST(Job, ParsingWhatWasPrintedGivesTheSameJob) {
  for (const auto& loaded :
       {parse_job(nano, "nano.yaml"), job_with("scaler: off", "scaler: {dynamic: false, growth: 4}"),
        job_with("on_error: stop", "on_error: continue 3"),
        job_with("lr: 0.003", "lr: 0.1000000000000000055511151231")}) {
    ASSERT_THAT(loaded.mistakes, ElementsAre());
    const std::string printed = print(*loaded.value, "");
    const auto again = parse_job(printed, "nano.yaml");
    ASSERT_THAT(again.mistakes, ElementsAre());
    EXPECT_EQ(print(*again.value, ""), printed);
    EXPECT_EQ(digest_of_job(*again.value), digest_of_job(*loaded.value));
    EXPECT_EQ(again.value->checkpoint, loaded.value->checkpoint);
    EXPECT_EQ(again.value->data, loaded.value->data);
  }
}

TEST(Job, DamagedTextIsReadOrRefusedWithAPlaceAndNeverACrash) {
  Rng rng(11);
  const std::string_view interesting = "{}[]:,#&*!|>'\"%@`-? \n\t\\\x01\xff";
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = nano;
    for (std::uint64_t changes = 1 + rng.below(4); changes > 0; --changes) {
      const std::size_t at = rng.below(text.size());
      if (rng.chance(1, 3)) {
        text.erase(at, 1 + rng.below(8));
      } else {
        text[at] = interesting[rng.below(interesting.size())];
      }
    }
    const auto loaded = parse_job(text, "nano.yaml");
    refused += loaded ? 0 : 1;
    EXPECT_NE(loaded.value.has_value(), !loaded.mistakes.empty()) << text;
    for (const std::string& mistake : loaded.mistakes) EXPECT_THAT(mistake, StartsWith("nano.yaml:")) << text;
  }
  EXPECT_GT(refused, 1000);
}

TEST(Job, ASettingOfAJobMustNameTheJob) {
  EXPECT_EQ(parse_job(nano, "nano.yaml", {.set = {"job.steps=7"}}).value->steps, 7);
  EXPECT_THAT(parse_job(nano, "nano.yaml", {.set = {"steps=7"}}).mistakes,
              ElementsAre("--set steps=7: only a scenario has `steps`: for a field of the job write job.steps"));
}

}  // namespace
}  // namespace firedrill

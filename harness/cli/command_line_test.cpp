#include "harness/cli/command_line.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "engine/base/rng.h"
#include "engine/model/numerics.h"
#include "engine/os/zygote.h"
#include "harness/mutants/mutants.h"
#include "harness/world/process_world.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

struct Answer {
  int code = 0;
  std::string out;
  std::string err;
};

Answer firedrill(std::vector<std::string> arguments) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = run_command_line(arguments, {.out = out, .err = err});
  return {code, out.str(), err.str()};
}

// A folder with a job on a small generated text, and scenarios that name it.
class CommandLine : public testing::Test {
 protected:
  static void SetUpTestSuite() { pin_numerics(); }
  CommandLine() {
    std::string name = (fs::temp_directory_path() / "firedrill-cli-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    fs::create_directories(folder_ / "scenarios" / "jobs");
    std::string text;
    Rng rng(5);
    for (int i = 0; i < 4000; ++i) text += static_cast<char>('a' + rng.below(26));
    write("scenarios/jobs/text", text);
    write("scenarios/jobs/nano.yaml", R"(# A small job.
schema: firedrill.job/1
model: {layers: 1, width: 16, heads: 2, sequence: 16, dropout: 0.1}
lanes: {dp: 2}
data: {corpus: text}
steps: 4
checkpoint: {every: 2}
)");
  }
  ~CommandLine() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  std::string scenario(const std::string& name, const std::string& rest) {
    return write(
        "scenarios/" + name,
        "# What it shows. And more.\nschema: firedrill.scenario/1\njob: jobs/nano.yaml\nlayout: {dp: 2}\n" + rest);
  }
  std::string job() const { return (folder_ / "scenarios/jobs/nano.yaml").string(); }

  fs::path folder_;
};

const std::string one_kill =
    "faults:\n  - {kill: {}, at: {rank: 1, step: 3, phase: backward}}\nrecovery: {budget: 2}\n";
const std::string poison =
    "faults:\n  - {kill: {}, at: {attempt: any, rank: 1, step: 3, phase: backward}, times: 0}\nrecovery: {budget: 1}\n";

TEST_F(CommandLine, AnUnknownVerbIsAnsweredWithThoseThatExist) {
  const Answer answer = firedrill({"rum"});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.err,
              AllOf(HasSubstr("unknown verb `rum`: did you mean `run`?"), HasSubstr("The verbs are: run, golden, ")));
  EXPECT_EQ(firedrill({"explore"}).code, 1);
  EXPECT_EQ(firedrill({}).code, 1);
}

TEST_F(CommandLine, HelpAndVersionAreNoMistakes) {
  EXPECT_EQ(firedrill({"--help"}).code, 0);
  EXPECT_THAT(firedrill({"--help"}).out, HasSubstr("golden"));
  EXPECT_THAT(firedrill({"run", "--help"}).out, HasSubstr("--world"));
  EXPECT_THAT(firedrill({"--version"}).out, StartsWith("firedrill 0."));
}

TEST_F(CommandLine, AnUnknownOptionIsAnsweredWithTheNearestOne) {
  const Answer answer = firedrill({"run", "x.yaml", "--sed", "3"});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.err, HasSubstr("--sed: did you mean --seed?"));
  EXPECT_EQ(firedrill({"run", "x.yaml", "--seed", "three"}).code, 1);
  EXPECT_EQ(firedrill({"run", "x.yaml", "--world", "real"}).code, 1);
}

TEST_F(CommandLine, JUnitSaysWhyInputWasRefusedAndWhatAGoldenGave) {
  const std::string file = (folder_ / "report.xml").string();
  const auto xml = [&file] {
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  };
  EXPECT_EQ(firedrill({"run", (folder_ / "three.yaml").string(), "--junit", file}).code, 1);
  EXPECT_THAT(xml(), AllOf(HasSubstr("<testcase"), HasSubstr("<error"), HasSubstr("there is no such file")));
  EXPECT_EQ(firedrill({"golden", "verify", job(), "--junit", file}).code, 4);
  EXPECT_THAT(xml(), AllOf(HasSubstr("<testcase"), HasSubstr("<error"), HasSubstr("no golden is recorded")));
}

TEST_F(CommandLine, AllMistakesOfAllScenariosAreSaidAndNothingRuns) {
  const std::string one = scenario("one.yaml", "wurld: sim\n");
  const std::string two = scenario("two.yaml", "recovery: {budget: many}\n");
  const std::string json = (folder_ / "report.json").string();
  const Answer answer = firedrill({"run", one, two, (folder_ / "three.yaml").string(), "--json", json});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.err,
              AllOf(HasSubstr(one + ":5:1: unknown key `wurld`: did you mean `world`?"),
                    HasSubstr(two + ":5:20: recovery.budget must be a whole number"),
                    HasSubstr("three.yaml: there is no such file"), HasSubstr("3 mistakes; nothing was run")));
  std::ifstream stream(json);
  const auto report = nlohmann::json::parse(stream);
  EXPECT_EQ(report["verdict"], "refused");
  EXPECT_EQ(report["exit_code"], 1);
  EXPECT_EQ(report["mistakes"].size(), 3);
}

TEST_F(CommandLine, ADisturbedRunThatResumesIsExitZero) {
  const Answer answer = firedrill({"run", scenario("kill.yaml", one_kill)});
  EXPECT_EQ(answer.code, 0) << answer.out << answer.err;
  EXPECT_THAT(answer.out, AllOf(StartsWith("PASS"), HasSubstr("equal"), HasSubstr("1 planned, 1 fired")));
  EXPECT_THAT(answer.err, HasSubstr("[1/1] pass"));
  const Answer quiet = firedrill({"run", scenario("kill.yaml", one_kill), "--quiet"});
  EXPECT_THAT(quiet.out + quiet.err, IsEmpty());
}

TEST_F(CommandLine, ARunThatNeverConvergesIsExitThreeUnlessThatIsExpected) {
  const std::string budget_free = scenario("poison.yaml", poison + "expect: liveness\n");
  EXPECT_EQ(firedrill({"run", budget_free}).code, 0);
  const Answer unmet = firedrill({"run", budget_free, "--set", "expect={fail: one_provenance}"});
  EXPECT_EQ(unmet.code, 3) << unmet.out << unmet.err;
  EXPECT_THAT(unmet.out, HasSubstr("reproduce: firedrill run"));
}

TEST_F(CommandLine, AnExpectedRefusalIsExitZeroAndRunsNothing) {
  const Answer answer = firedrill({"run", scenario("refuse.yaml", poison + "expect: refuse\n")});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, AllOf(StartsWith("REFUSED"), Not(HasSubstr("attempts"))));
  EXPECT_EQ(firedrill({"run", scenario("refuse2.yaml", poison)}).code, 1);
}

TEST_F(CommandLine, APassWhereAFailureWasExpectedIsExitTwo) {
  EXPECT_EQ(firedrill({"run", scenario("e.yaml", one_kill + "expect: {fail: one_provenance}\n")}).code, 2);
}

TEST_F(CommandLine, ADirectoryStandsForItsScenariosAndAFilterChooses) {
  scenario("a.yaml", "");
  scenario("deep/b.yaml", "");
  write("scenarios/deep/b.yaml", "schema: firedrill.scenario/1\njob: ../jobs/nano.yaml\n");
  const std::string directory = (folder_ / "scenarios").string();
  const Answer answer = firedrill({"run", directory, "--json", "-"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_EQ(nlohmann::json::parse(answer.out)["runs"].size(), 2);
  const Answer one = firedrill({"run", directory, "--json", "-", "--filter", "*/deep/*"});
  EXPECT_EQ(nlohmann::json::parse(one.out)["runs"].size(), 1);
  EXPECT_EQ(firedrill({"run", directory, "--filter", "zzz"}).code, 1);
  EXPECT_EQ(firedrill({"run", directory, "--jobs", "2"}).code, 0);
}

TEST_F(CommandLine, OutMustBeFreshAndHoldsARunThatCanBeReplayed) {
  const std::string out = (folder_ / "out").string();
  EXPECT_EQ(firedrill({"run", scenario("kill.yaml", one_kill), "--out", out, "--seed", "9"}).code, 0);
  for (const char* file : {"plan.json", "history.jsonl", "report.json"}) EXPECT_TRUE(fs::exists(fs::path(out) / file));
  const Answer again = firedrill({"run", scenario("kill.yaml", one_kill), "--out", out});
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr("exists already"));

  const Answer same = firedrill({"replay", out});
  EXPECT_EQ(same.code, 0) << same.out;
  EXPECT_THAT(same.out, HasSubstr("same history: "));
  // A history that is not the plan's is not taken for it.
  const fs::path history = fs::path(out) / "history.jsonl";
  std::stringstream text;
  text << std::ifstream(history).rdbuf();
  std::string changed = text.str();
  const std::size_t at = changed.find("\"step_done\"");
  ASSERT_NE(at, std::string::npos);
  const std::size_t line = changed.rfind('\n', at) + 1;
  changed.erase(line, changed.find('\n', line) + 1 - line);
  std::ofstream(history) << changed;
  const Answer other = firedrill({"replay", out});
  EXPECT_EQ(other.code, 4) << other.out;
  EXPECT_THAT(other.out, HasSubstr("another history than the saved one"));
  EXPECT_EQ(firedrill({"replay", (folder_ / "none").string()}).code, 1);
}

TEST_F(CommandLine, AReplayThatHasNothingToCompareWithIsUnknown) {
  const std::string out = (folder_ / "out").string();
  ASSERT_EQ(firedrill({"run", scenario("kill.yaml", one_kill), "--out", out}).code, 0);
  fs::remove(fs::path(out) / "history.jsonl");
  const Answer answer = firedrill({"replay", out});
  EXPECT_EQ(answer.code, 4) << answer.out;
  EXPECT_THAT(answer.out, AllOf(HasSubstr("nothing to compare with"), HasSubstr("history.jsonl")));
  EXPECT_EQ(firedrill({"replay", out + "/plan.json"}).code, 0) << "a plan alone can be run";
}

TEST_F(CommandLine, AReplayThatFailsByItselfStaysAFailure) {
  const std::string out = (folder_ / "out").string();
  ASSERT_EQ(firedrill({"run", scenario("kill.yaml", one_kill), "--out", out, "--mutant", "optimizer_step_reset"}).code,
            2);
  fs::remove(fs::path(out) / "history.jsonl");
  const Answer answer = firedrill({"replay", out});
  EXPECT_EQ(answer.code, 2) << answer.out;
  EXPECT_THAT(answer.out, AllOf(HasSubstr("resume_equals_golden"), HasSubstr("nothing to compare with")));
}

TEST_F(CommandLine, AReplayOfRealProcessesIsComparedByItsNumbers) {
  const std::string out = (folder_ / "out").string();
  ASSERT_EQ(firedrill({"run", scenario("kill.yaml", one_kill), "--out", out, "--world", "process"}).code, 0);
  const Answer same = firedrill({"replay", out});
  EXPECT_EQ(same.code, 0) << same.out << same.err;
  EXPECT_THAT(same.out, AllOf(HasSubstr("compared with"), HasSubstr("the final digest")));
  std::stringstream text;
  text << std::ifstream(out + "/report.json").rdbuf();
  auto report = nlohmann::json::parse(text.str());
  report["runs"][0]["faults"]["fired"][0]["step"] = 2;
  std::ofstream(out + "/report.json") << report;
  const Answer elsewhere = firedrill({"replay", out});
  EXPECT_EQ(elsewhere.code, 4);
  EXPECT_THAT(elsewhere.out, HasSubstr("other faults fired, or elsewhere"));
  report["runs"][0]["final_digest"] = "00";
  std::ofstream(out + "/report.json") << report;
  EXPECT_THAT(firedrill({"replay", out}).out, HasSubstr("another final state than the saved one"));
  fs::remove(out + "/report.json");
  EXPECT_EQ(firedrill({"replay", out}).code, 4);
}

TEST_F(CommandLine, TheReportHasTheSeedOfTheScenario) {
  const std::string file = scenario("seeded.yaml", one_kill + "seed: 9\n");
  EXPECT_EQ(nlohmann::json::parse(firedrill({"run", file, "--json", "-"}).out)["seed"], 9);
  EXPECT_EQ(nlohmann::json::parse(firedrill({"run", file, "--json", "-", "--seed", "4"}).out)["seed"], 4);
}

TEST_F(CommandLine, OutIsRefusedWhereNothingIsKept) {
  const std::string out = (folder_ / "out").string();
  for (const std::vector<std::string>& verb :
       {std::vector<std::string>{"list", "faults"}, {"golden", "verify", job()}, {"audit", folder_.string()}}) {
    std::vector<std::string> arguments = verb;
    arguments.insert(arguments.end(), {"--out", out});
    const Answer answer = firedrill(arguments);
    EXPECT_EQ(answer.code, 1) << verb.front();
    EXPECT_THAT(answer.err, HasSubstr(fmt::format("--out: `{}` keeps nothing", verb.front())));
    EXPECT_FALSE(fs::exists(out));
  }
}

TEST_F(CommandLine, ALogOfTheCatalogThatWasCutIsDamageUntilTheCatalogIsRebuilt) {
  const std::string out = (folder_ / "out").string();
  const std::string file = scenario("none.yaml", "");
  const std::string catalog = "job.checkpoint.catalog=rocksdb";
  ASSERT_EQ(firedrill({"run", file, "--out", out, "--world", "process", "--set", catalog}).code, 0);
  ASSERT_EQ(firedrill({"audit", out}).code, 0);
  for (const auto& entry : fs::directory_iterator(fs::path(out) / "disk/catalog")) {
    if (entry.path().extension() == ".log") fs::resize_file(entry.path(), 0);
  }
  const Answer cut = firedrill({"audit", out});
  EXPECT_EQ(cut.code, 2) << cut.out;
  EXPECT_THAT(cut.out, HasSubstr("the catalog has lost it"));
  const Answer rebuilt = firedrill({"audit", out, "--rebuild-catalog"});
  EXPECT_EQ(rebuilt.code, 0) << rebuilt.out << rebuilt.err;
  EXPECT_EQ(firedrill({"audit", out}).code, 0);
  EXPECT_THAT(firedrill({"audit", out, "--rebuild-catalog"}).err, HasSubstr(out + "/disk: the catalog that is there"));
  // A catalog of which a checkpoint is lost for good: its copy of the manifest is garbage.
  fs::remove_all(fs::path(out) / "disk/catalog");
  std::ofstream(fs::path(out) / "disk/shards/4-1-1/manifest") << "garbage";
  const Answer partly = firedrill({"audit", out, "--rebuild-catalog"});
  EXPECT_EQ(partly.code, 2) << partly.out << partly.err;
  EXPECT_THAT(partly.out, HasSubstr("LOST      4-1-1: its manifest"));
}

TEST_F(CommandLine, AnAuditSaysWhyARootCannotBeUsed) {
  const std::string out = (folder_ / "out").string();
  ASSERT_EQ(firedrill({"run", scenario("none.yaml", ""), "--out", out}).code, 0);
  const Answer sim = firedrill({"audit", out});
  EXPECT_EQ(sim.code, 1);
  EXPECT_THAT(sim.err, AllOf(HasSubstr("sim world, whose disk is not kept"), HasSubstr("--world process")));
  EXPECT_THAT(firedrill({"run", "--help"}).out, HasSubstr("of the process world"));
  const fs::path root = folder_ / "root";
  fs::create_directories(root);
  const Answer empty = firedrill({"audit", root.string(), "--rebuild-catalog"});
  EXPECT_THAT(empty.err, HasSubstr(root.string() + ": there is no checkpoint root here"));
  fs::create_directories(root / "shards/2-1-1");
  fs::create_directory_symlink(folder_, root / "catalog");
  const Answer link = firedrill({"audit", root.string(), "--rebuild-catalog"});
  EXPECT_EQ(link.code, 1);
  EXPECT_THAT(link.err, HasSubstr("catalog is a symbolic link, which is not followed"));
  fs::remove(root / "catalog");
  std::ofstream(root / "catalog") << "no directory";
  const Answer storage = firedrill({"audit", root.string(), "--rebuild-catalog"});
  EXPECT_EQ(storage.code, 4) << storage.out << storage.err;
  EXPECT_THAT(storage.out, HasSubstr("io_error"));
}

TEST_F(CommandLine, AMutantThatSurvivesSaysHowToHuntItAgain) {
  // The one plan of this seed does not show the mutant.
  const Answer answer = firedrill({"mutants", "optimizer_step_reset", "--scenario", scenario("base.yaml", ""),
                                   "--trials", "1", "--seed", "1", "--prepared", "--json", "-"});
  EXPECT_EQ(answer.code, 2) << answer.out << answer.err;
  EXPECT_EQ(nlohmann::json::parse(answer.out)["survived"].size(), 1);
  // The right engine runs the plans of every preparation of the mutants that were hunted: here of none.
  EXPECT_EQ(nlohmann::json::parse(answer.out)["control"]["trials"], 50);
  EXPECT_THAT(answer.err, HasSubstr("reproduce: firedrill mutants optimizer_step_reset --seed "));
}

TEST_F(CommandLine, ThePlanThatCaughtAMutantIsKeptAndFailsAgain) {
  const std::string out = (folder_ / "out").string();
  const std::string name = "optimizer_step_reset";
  const Answer answer = firedrill({"mutants", name, "--scenario", scenario("base.yaml", ""), "--out", out});
  ASSERT_EQ(answer.code, 0) << answer.out << answer.err;
  const std::string plan = out + "/" + name + ".plan.json";
  EXPECT_THAT(answer.out, EndsWith("reproduce: firedrill replay " + plan + "\n"));
  std::stringstream text;
  text << std::ifstream(out + "/report.json").rdbuf();
  const auto killed = nlohmann::json::parse(text.str())["killed"][0];
  EXPECT_EQ(killed["expected"], "resume_equals_golden");
  const Answer again = firedrill({"replay", plan});
  EXPECT_EQ(again.code, 2) << again.out;
  EXPECT_THAT(again.out, HasSubstr(killed["property"].get<std::string>()));
}

TEST_F(CommandLine, AMutantIsCaughtWithExitTwoAndTheReproduceLineComesLast) {
  // This job is too short for those that need more than one checkpoint.
  const Answer answer = firedrill({"mutants", "optimizer_step_reset", "protocol_largest_directory",
                                   "protocol_tracker_file", "protocol_unsynced_files", "random_state_of_rank_zero",
                                   "--scenario", scenario("base.yaml", one_kill), "--json", "-"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  const auto report = nlohmann::json::parse(answer.out);
  EXPECT_EQ(report["killed"].size(), 5);
  EXPECT_TRUE(report["survived"].empty());
  EXPECT_EQ(report["canaries"].size(), 3);
  const std::string name = "optimizer_step_reset";
  const Answer run = firedrill({"run", scenario("base.yaml", one_kill), "--mutant", name});
  EXPECT_EQ(run.code, 2) << run.out << run.err;
  EXPECT_THAT(run.out,
              AllOf(StartsWith("FAIL"), HasSubstr("resume_equals_golden"), EndsWith("--mutant " + name + "\n")));
  const Answer unknown = firedrill({"run", "x.yaml", "--mutant", "optimizer_step_rest"});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean optimizer_step_reset?"));
}

TEST_F(CommandLine, GoldensAreRecordedOnceAndVerified) {
  EXPECT_EQ(firedrill({"golden", "verify", job()}).code, 4);
  const Answer recorded = firedrill({"golden", "record", job()});
  EXPECT_EQ(recorded.code, 0) << recorded.err;
  EXPECT_THAT(recorded.out, StartsWith("recorded"));
  EXPECT_TRUE(fs::exists(folder_ / "golden"));
  EXPECT_THAT(firedrill({"golden", "record", job()}).out, StartsWith("unchanged"));
  EXPECT_EQ(firedrill({"golden", "verify", job()}).code, 0);
  EXPECT_EQ(firedrill({"golden", "verify", job(), "--set", "job.seed=2"}).code, 4);
  EXPECT_EQ(firedrill({"golden", "verify", (folder_ / "none.yaml").string()}).code, 1);
  EXPECT_EQ(firedrill({"golden", "check", job()}).code, 1);
}

TEST_F(CommandLine, ListsHaveNamesAndSummaries) {
  scenario("shows.yaml", "");
  const std::string directory = (folder_ / "scenarios").string();
  for (const char* what : {"faults", "properties", "mutants", "jobs", "scenarios"}) {
    const Answer answer = firedrill({"list", what, "--json", "-", "--dir", directory});
    EXPECT_EQ(answer.code, 0);
    const auto report = nlohmann::json::parse(answer.out);
    ASSERT_FALSE(report["items"].empty()) << what;
    for (const auto& item : report["items"]) EXPECT_FALSE(item["summary"].get<std::string>().empty()) << item;
  }
  EXPECT_THAT(firedrill({"list", "scenarios", "--dir", directory}).out, HasSubstr("shows.yaml  What it shows.\n"));
  EXPECT_EQ(firedrill({"list", "faults", "--json", "-", "--filter", "kill"}).code, 0);
  EXPECT_EQ(firedrill({"list", "things"}).code, 1);
}

}  // namespace
}  // namespace firedrill

// The same program also is the zygote of the process world.
int main(int argc, char** argv) {
  firedrill::pin_numerics();
  if (argc > 1 && std::string_view(argv[1]) == firedrill::zygote_verb)
    return firedrill::zygote_main(argc, argv,
                                  {firedrill::make_protocol, firedrill::make_publisher, firedrill::make_rules});
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}

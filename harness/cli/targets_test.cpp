// Where the verbs write to, and what they refuse before anything runs: options that mean nothing to a verb, targets
// that cannot be written, and explorations without a trial.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "engine/model/numerics.h"
#include "harness/cli/test_answer.h"
#include "harness/cli/write_file.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class Targets : public testing::Test {
 protected:
  static void SetUpTestSuite() { pin_numerics(); }
  Targets() {
    std::string name = (fs::temp_directory_path() / "firedrill-targets-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~Targets() override { fs::remove_all(folder_); }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

TEST_F(Targets, AFifoIsWrittenIntoAndStaysOne) {
  ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0600), 0);
  const int reader = ::open(at("fifo").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  EXPECT_TRUE(write_file(at("fifo"), "page"));
  std::array<char, 8> text{};
  EXPECT_EQ(::read(reader, text.data(), text.size()), 4);
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(at("fifo")));
}

TEST_F(Targets, AFileIsReplacedAndAFailureLeavesNothing) {
  std::ofstream(at("page")) << "a longer text of before";
  ASSERT_TRUE(write_file(at("page"), "page"));
  EXPECT_EQ(fs::file_size(at("page")), 4);
  fs::create_directory(at("folder"));
  EXPECT_FALSE(write_file(at("folder"), "page"));
  EXPECT_FALSE(write_file(at("none/page"), "page"));
  EXPECT_EQ(entries(), 2) << "page and folder, and nothing beside them";
}

TEST_F(Targets, ALinkIsFollowedAndKept) {
  std::ofstream(at("page")) << "before";
  fs::create_symlink("page", at("link"));
  ASSERT_TRUE(write_file(at("link"), "page"));
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_EQ(fs::file_size(at("page")), 4);
}

TEST_F(Targets, OneFileForTwoOptionsIsAMistakeHoweverItIsWritten) {
  EXPECT_THAT(mistakes_in_targets({{"--html", at("a")}, {"--trace", at("b/../a")}}), SizeIs(1));
  EXPECT_THAT(mistakes_in_targets({{"--html", at("a")}, {"--trace", at("b")}, {"--json", "-"}, {"--junit", ""}}),
              SizeIs(0));
  const Answer both = firedrill({"list", "faults", "--json", at("a"), "--junit", at("a")});
  EXPECT_EQ(both.code, 1);
  EXPECT_EQ(entries(), 0);
  const Answer same = firedrill({"report", at("run"), "--html", at("a"), "--json", at("a")});
  EXPECT_EQ(same.code, 1);
  EXPECT_THAT(same.err, HasSubstr("--html and --json are both " + at("a")));
  const Answer folder = firedrill({"report", at("run"), "--html", folder_.string()});
  EXPECT_EQ(folder.code, 1);
  EXPECT_THAT(folder.err, HasSubstr("it is a directory"));
}

TEST_F(Targets, ADirectoryThatIsNotThereIsSaidBeforeAnythingRuns) {
  std::ofstream(at("file")) << "in the way";
  EXPECT_THAT(mistakes_in_targets({{"--html", at("none/page")}, {"--trace", at("file/page")}}),
              ElementsAre(HasSubstr(at("none") + " is not there; make it first"),
                          HasSubstr(at("file") + " is not a directory")));
  for (const char* out : {"out", "out/", "made/out"}) {
    EXPECT_THAT(mistakes_in_targets({{"--json", at(out) + "/a"}}, at(out)), SizeIs(0)) << out;
    EXPECT_THAT(mistakes_in_targets({{"--json", at(out) + "/a/b"}}, at(out)), SizeIs(1)) << "only --out is made";
    EXPECT_THAT(mistakes_in_targets({{"--json", at(out) + "/b/../c"}}, at(out)), SizeIs(1)) << "b is not there";
    EXPECT_THAT(
        mistakes_in_targets({{"--junit", at(out) + "/plan.json"}, {"--json", at(out) + "/history.jsonl"}}, at(out)),
        SizeIs(2))
        << "--out keeps these";
  }
  EXPECT_THAT(mistakes_in_targets({{"--json", at("made/a")}}, at("made/out")), SizeIs(0)) << "made on the way";
  for (const char* option : {"--json", "--junit"}) {
    const Answer answer = firedrill({"run", "scenarios/quickstart.yaml", option, at("none/report")});
    EXPECT_EQ(answer.code, 1);
    EXPECT_THAT(answer.err, HasSubstr(std::string(option) + " " + at("none/report")));
    EXPECT_EQ(answer.out, "");
  }
}

TEST_F(Targets, AReportMayLieInTheDirectoryThatTheRunIsKeptIn) {
  const Answer answer = firedrill({"run", "scenarios/quickstart.yaml", "--out", at("out"), "--json", at("out/a.json")});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_TRUE(fs::exists(at("out/a.json")));
  for (const std::vector<std::string>& verb : {std::vector<std::string>{"replay", at("out")},
                                               {"replay", at("out/plan.json")},
                                               {"shrink", at("out/plan.json")},
                                               {"audit", at("out")}}) {
    for (const char* name : {"out/report.json", "out/plan.json", "out/history.jsonl", "out/disk/x"}) {
      fs::create_directories(at("out/disk"));
      const Answer over = firedrill({verb[0], verb[1], "--json", at(name)});
      EXPECT_EQ(over.code, 1) << verb[0] << " " << verb[1] << " " << name;
      EXPECT_THAT(over.err, HasSubstr("it would write over what"));
    }
  }
  EXPECT_EQ(firedrill({"replay", at("out"), "--json", at("out/again.json")}).code, 0);
}

TEST_F(Targets, CheckpointsAreNotWrittenOver) {
  fs::create_directories(at("root/shards/2-1-1"));
  fs::create_directories(at("root/manifests"));
  for (const char* name : {"root/manifests/2-1-1", "root/shards/2-1-1/part", "root"}) {
    EXPECT_THAT(mistakes_in_targets_of(at("root"), {{"--json", at(name)}}), SizeIs(1)) << name;
  }
  for (const char* name : {"root/audit.json", "root/report.json", "root/results/report.json"}) {
    EXPECT_THAT(mistakes_in_targets_of(at("root"), {{"--json", at(name)}}), SizeIs(0)) << name;
  }
}

TEST_F(Targets, APlanGivenByARelativeNameIsNotWrittenOver) {
  const fs::path before = fs::current_path();
  std::ofstream(at("plan.json")) << "{}";
  fs::current_path(folder_);
  EXPECT_THAT(mistakes_in_targets_of("plan.json", {{"--json", "plan.json"}}), SizeIs(1));
  EXPECT_THAT(mistakes_in_targets_of("plan.json", {{"--json", "results/report.json"}}), SizeIs(0));
  fs::current_path(before);
}

TEST_F(Targets, AnEmptyNameIsRefused) {
  for (const char* option : {"--json", "--junit", "--html"}) {
    const Answer answer = firedrill({"report", at("run"), option, ""});
    EXPECT_EQ(answer.code, 1);
    EXPECT_THAT(answer.err, HasSubstr(std::string(option) + " is empty: give a value, or leave it out"));
  }
}

TEST_F(Targets, WhatIsWrongWithAWriteIsSaid) {
  fs::create_symlink("/dev/full", at("full"));
  const Status full = write_file(at("full"), "page");
  ASSERT_FALSE(full);
  EXPECT_THAT(full.error().message, HasSubstr("No space left on device"));
  EXPECT_THAT(write_file(at("none/page"), "page").error().message, HasSubstr("No such file or directory"));
}

TEST_F(Targets, AKeptRunIsNotWrittenOver) {
  fs::create_directories(at("run/disk"));
  std::ofstream(at("run/report.json")) << "kept";
  fs::create_symlink("run/report.json", at("link"));
  for (const char* name : {"run/report.json", "run/../run/plan.json", "run/history.jsonl", "run/disk/page", "link"}) {
    for (const char* option : {"--html", "--trace", "--metrics", "--json", "--junit"}) {
      const Answer answer = firedrill({"report", at("run"), option, at(name)});
      EXPECT_EQ(answer.code, 1) << option << " " << name;
      EXPECT_THAT(answer.err, HasSubstr("it would write over what " + at("run") + " keeps"));
    }
  }
  EXPECT_EQ(firedrill({"diagnose", at("none"), "--against", at("run"), "--json", at("link")}).code, 1);
  EXPECT_EQ(fs::file_size(at("run/report.json")), 4);
  EXPECT_THAT(mistakes_in_targets_of(at("run"), {{"--html", at("run/page.html")}, {"--json", "-"}}), SizeIs(0));
}

TEST_F(Targets, StandardOutputIsForJsonAlone) {
  EXPECT_THAT(mistakes_in_targets({{"--html", "-"}, {"--junit", "-"}, {"--json", "-"}}), SizeIs(2));
}

TEST_F(Targets, AnOutThatCannotBeMadeIsRefusedBeforeAnythingRuns) {
  std::ofstream(at("file")) << "in the way";
  for (const char* verb : {"run", "explore", "mutants"}) {
    std::vector<std::string> arguments = {verb, "--out", at("file/out")};
    if (std::string(verb) != "mutants") arguments.insert(arguments.begin() + 1, "scenarios/quickstart.yaml");
    const Answer answer = firedrill(arguments);
    EXPECT_EQ(answer.code, 1) << verb;
    EXPECT_THAT(answer.err, HasSubstr("--out " + at("file/out") + ": it cannot be made")) << verb;
  }
  EXPECT_EQ(firedrill({"run", "no such scenario", "--out", at("out")}).code, 1);
  EXPECT_FALSE(fs::exists(at("out"))) << "what is refused leaves nothing";
}

TEST_F(Targets, AnOptionThatAVerbDoesNotHeedIsRefusedByName) {
  const Answer explored = firedrill({"explore", "scenarios/jobs/nano.yaml", "--filter", "zzz", "--trials", "1"});
  EXPECT_EQ(explored.code, 1);
  EXPECT_THAT(explored.err, HasSubstr("--filter: `explore` has no use for it"));
  EXPECT_EQ(firedrill({"list", "faults", "--seed", "3"}).code, 1);
  EXPECT_EQ(firedrill({"list", "faults", "--filter", "kill"}).code, 0);
}

TEST_F(Targets, SecondsOfShrinkAreANumber) {
  EXPECT_THAT(firedrill({"shrink", at("run"), "--seconds", "nan"}).err, HasSubstr("--seconds is no number"));
}

class NoTrial : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(NoTrial, IsRefusedAndNoPass) {
  std::vector<std::string> arguments = {"explore", "scenarios/jobs/nano.yaml"};
  arguments.insert(arguments.end(), GetParam().begin(), GetParam().end());
  const Answer answer = firedrill(arguments);
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.err, HasSubstr(GetParam().front() + " " + GetParam()[1]));
}

INSTANTIATE_TEST_SUITE_P(Explored, NoTrial,
                         testing::Values(std::vector<std::string>{"--first", "18446744073709551615", "--trials", "5"},
                                         std::vector<std::string>{"--shard", "99999999999/999999999999", "--trials",
                                                                  "5"},
                                         std::vector<std::string>{"--time", "0s"}));

TEST(Explored, TheLastNumberAndAShardOfManyAreRun) {
  pin_numerics();
  EXPECT_THAT(
      firedrill({"explore", "scenarios/jobs/nano.yaml", "--first", "18446744073709551615", "--trials", "1"}).out,
      HasSubstr("1 trials in"));
  EXPECT_THAT(firedrill({"explore", "scenarios/jobs/nano.yaml", "--first", "7", "--trials", "3", "--shard",
                         "8/18446744073709551615"})
                  .out,
              HasSubstr("1 trials in"));
}

TEST(Explored, TheReproduceLineNamesTheWorldThatWasGiven) {
  pin_numerics();
  const Answer answer = firedrill(
      {"explore", "scenarios/jobs/nano.yaml", "--world", "sim", "--trials", "20", "--mutant", "optimizer_step_reset"});
  EXPECT_EQ(answer.code, 2) << answer.out;
  EXPECT_THAT(answer.out, AllOf(HasSubstr("reproduce: firedrill explore scenarios/jobs/nano.yaml --seed 1 --first "),
                                HasSubstr(" --trials 1 --world sim --mutant optimizer_step_reset")));
}

}  // namespace
}  // namespace firedrill

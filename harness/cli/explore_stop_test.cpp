// An exploration that is ended by a signal keeps what it has found: its corpus and a report of what it has done so far.
// A later one goes on from there.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "harness/cli/test_answer.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;

// `firedrill explore` in a process of its own, with far more trials than it will come to.
class StartedExploration {
 public:
  StartedExploration() {
    std::string name = (fs::temp_directory_path() / "firedrill-explore-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    process_ = ::fork();
    if (process_ != 0) return;
    const Answer answer = firedrill({"explore", "scenarios/jobs/nano.yaml", "--trials", "100000000", "--jobs", "1",
                                     "--quiet", "--out", out().string()});
    std::ofstream(folder_ / "said.txt") << answer.out;
    ::_exit(answer.code);
  }
  ~StartedExploration() { fs::remove_all(folder_); }
  StartedExploration(const StartedExploration&) = delete;
  StartedExploration& operator=(const StartedExploration&) = delete;

  fs::path folder() const { return folder_; }
  fs::path out() const { return folder_ / "out"; }
  nlohmann::json report() const { return nlohmann::json::parse(std::ifstream(out() / "report.json"), nullptr, false); }
  // Once it has told of some trials. False: not within a minute.
  bool is_under_way() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!fs::exists(out() / "report.json")) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
  }
  int end_by(int signal) const {
    ::kill(process_, signal);
    int status = 0;
    ::waitpid(process_, &status, 0);
    return status;
  }

 private:
  fs::path folder_;
  pid_t process_ = 0;
};

class AStoppedExploration : public testing::TestWithParam<int> {};

TEST_P(AStoppedExploration, KeepsItsReportAndItsCorpusAndIsGoneOnFrom) {
  const StartedExploration stopped;
  ASSERT_TRUE(stopped.is_under_way());
  const int status = stopped.end_by(GetParam());
  if (GetParam() == SIGKILL) {
    EXPECT_TRUE(WIFSIGNALED(status));
  } else {
    ASSERT_TRUE(WIFEXITED(status)) << "a first signal ends it in order";
    EXPECT_NE(WEXITSTATUS(status), 4);
  }
  const nlohmann::json report = stopped.report();
  ASSERT_TRUE(report.is_object()) << "it can be read whole at any time";
  EXPECT_EQ(report["schema"], "firedrill.report/1");
  EXPECT_EQ(report["stopped"], true);
  EXPECT_GT(report["trials"], 0);
  const int plans = report["corpus_plans"];
  EXPECT_GT(plans, 0);

  const Answer later = firedrill({"explore", "scenarios/jobs/nano.yaml", "--trials", "40", "--first", "1000000",
                                  "--jobs", "1", "--quiet", "--json", (stopped.folder() / "later.json").string(),
                                  "--corpus", (stopped.out() / "corpus").string()});
  EXPECT_NE(later.code, 4) << later.out << later.err;
  const auto more = nlohmann::json::parse(std::ifstream(stopped.folder() / "later.json"), nullptr, false);
  EXPECT_EQ(more["trials"], 40);
  EXPECT_GE(more["corpus_plans"], plans) << "what was kept is there";
  EXPECT_EQ(more["from_corpus"], 10) << "one trial in four comes from it";
}

INSTANTIATE_TEST_SUITE_P(By, AStoppedExploration, testing::Values(SIGINT, SIGTERM, SIGKILL), [](const auto& signal) {
  return std::string(signal.param == SIGINT ? "CtrlC" : signal.param == SIGTERM ? "SIGTERM" : "SIGKILL");
});

}  // namespace
}  // namespace firedrill

// Nothing of a run stays behind: no process, also none that is stopped, and no temporary file, when a run ends and when
// its supervisor is told to end.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "harness/cli/command_line.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

// The processes of a session that have not ended, and how many of them are stopped.
struct Processes {
  int alive = 0;
  int stopped = 0;
};

Processes processes_of(pid_t session) {
  Processes found;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    std::stringstream text;
    text << std::ifstream(entry.path() / "stat").rdbuf();
    const std::string line = text.str();
    const std::size_t name_end = line.rfind(')');
    if (name_end == std::string::npos) continue;
    std::istringstream fields(line.substr(name_end + 1));
    char state = 0;
    pid_t parent = 0;
    pid_t group = 0;
    pid_t of_session = 0;
    fields >> state >> parent >> group >> of_session;
    if (of_session != session || state == 'Z') continue;
    ++found.alive;
    found.stopped += state == 'T' ? 1 : 0;
  }
  return found;
}

// `firedrill run` on a scenario in a session of its own, with a folder for temporary files.
class StartedRun {
 public:
  explicit StartedRun(const std::string& rest) {
    std::string name = (fs::temp_directory_path() / "firedrill-leftover-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    fs::create_directory(folder_ / "tmp");
    std::ofstream(folder_ / "run.yaml") << "schema: firedrill.scenario/1\njob: "
                                        << fs::absolute("scenarios/jobs/nano.yaml").string()
                                        << "\nlayout: {dp: 4}\nworld: process\n"
                                        << rest;
    supervisor_ = ::fork();
    if (supervisor_ == 0) {
      ::setsid();
      ::setenv("TMPDIR", (folder_ / "tmp").c_str(), 1);
      std::ostringstream out;
      std::ostringstream err;
      ::_exit(run_command_line({"run", (folder_ / "run.yaml").string()}, {.out = out, .err = err}));
    }
  }
  ~StartedRun() { fs::remove_all(folder_); }
  StartedRun(const StartedRun&) = delete;
  StartedRun& operator=(const StartedRun&) = delete;

  pid_t supervisor() const { return supervisor_; }
  // False: not within a minute.
  bool wait_until(const std::function<bool(const Processes&)>& so) const {
    const auto end = steady_clock::now() + seconds(60);
    while (!so(processes_of(supervisor_))) {
      if (steady_clock::now() > end) return false;
      std::this_thread::sleep_for(milliseconds(10));
    }
    return true;
  }
  int end() const {
    int status = 0;
    ::waitpid(supervisor_, &status, 0);
    return status;
  }
  void expect_nothing_left() const {
    EXPECT_EQ(processes_of(supervisor_).alive, 0);
    EXPECT_TRUE(fs::is_empty(folder_ / "tmp"));
  }

 private:
  fs::path folder_;
  pid_t supervisor_ = 0;
};

const std::string one_hang =
    "faults:\n  - {hang: {}, at: {rank: 2, step: 3, phase: exchange}}\nrecovery: {budget: 1}\n";

// By the kind of the fault that ends its first attempt.
class LeftoverOfARun : public ::testing::TestWithParam<std::string_view> {};

TEST_P(LeftoverOfARun, IsNothing) {
  const StartedRun run(
      fmt::format("set: {{job.cluster.deadline: 1s, job.cluster.heartbeat: 100ms, job.steps: 4}}\n"
                  "faults:\n  - {{{}: {{}}, at: {{rank: 2, step: 3, phase: exchange}}}}\nrecovery: {{budget: 1}}\n",
                  GetParam()));
  const int status = run.end();
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  run.expect_nothing_left();
}

INSTANTIATE_TEST_SUITE_P(Faults, LeftoverOfARun, ::testing::Values("hang", "stall", "exit", "kill", "preempt"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST(Leftover, ATerminatedSupervisorLeavesNothingThoughARankIsStopped) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const StartedRun run(one_hang);  // with a deadline that does not come
    ASSERT_TRUE(run.wait_until([](const Processes& now) { return now.stopped == 1; }));
    ASSERT_EQ(::kill(run.supervisor(), signal), 0);
    const int status = run.end();
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), signal) << "the signal has its usual effect in the end";
    run.expect_nothing_left();
  }
}

TEST(Leftover, AKilledSupervisorLeavesNoProcess) {
  const StartedRun run(one_hang);
  ASSERT_TRUE(run.wait_until([](const Processes& now) { return now.stopped == 1; }));
  ASSERT_EQ(::kill(run.supervisor(), SIGKILL), 0);
  run.end();
  EXPECT_TRUE(run.wait_until([](const Processes& now) { return now.alive == 0; }));
}

}  // namespace
}  // namespace firedrill

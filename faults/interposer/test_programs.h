// For tests: runs programs of the stand-in under the interposer and reads what they leave behind.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "faults/interposer/ring_reader.h"

namespace firedrill::interposer {

using Words = std::vector<std::string>;

inline Words words_of(const std::string& text) {
  Words words(1);
  for (const char c : text) {
    if (c != ' ') {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

struct Ended {
  int status = 0;  // as waitpid gives it
  std::string out;
  std::string err;
  int exit_code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status); }
};

inline std::string content_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// A process of ours, killed at the latest when it goes out of scope. Its output goes to files.
class Program {
 public:
  Program(const Words& command, const std::map<std::string, std::string>& environment, std::filesystem::path out)
      : out_(std::move(out)) {
    Words variables;
    for (char** variable = environ; *variable; ++variable) {
      const std::string text = *variable;
      const std::string name = text.substr(0, text.find('='));
      if (!environment.contains(name) && name != "RANK" && !name.starts_with("FIREDRILL_")) variables.push_back(text);
    }
    for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
    pid_ = ::fork();
    if (pid_ != 0) return;
    const int file = ::open((out_.string() + ".out").c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    const int errors = ::open((out_.string() + ".err").c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    ::dup2(file, 1);
    ::dup2(errors, 2);
    std::vector<char*> arguments;
    std::vector<char*> names;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    for (const std::string& variable : variables) names.push_back(const_cast<char*>(variable.c_str()));
    arguments.push_back(nullptr);
    names.push_back(nullptr);
    ::execve(arguments[0], arguments.data(), names.data());
    ::_exit(127);
  }
  Program(Program&& other) noexcept : pid_(std::exchange(other.pid_, -1)), out_(std::move(other.out_)) {}
  Program& operator=(Program&&) = delete;
  ~Program() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }
  std::string out() const { return content_of(out_.string() + ".out"); }

  // Its end; a test fails if it does not come in time.
  Ended end(std::chrono::seconds longest = std::chrono::seconds(60)) {
    Ended ended;
    if (wait_for(ended.status, 0, longest)) pid_ = -1;
    ended.out = out();
    ended.err = content_of(out_.string() + ".err");
    return ended;
  }
  // Until SIGSTOP has stopped it.
  bool stops() {
    int status = 0;
    return wait_for(status, WUNTRACED, std::chrono::seconds(30)) && WIFSTOPPED(status);
  }
  // Until its output has the text.
  bool says(const std::string& text) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (out().find(text) == std::string::npos) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }

 private:
  bool wait_for(int& status, int flags, std::chrono::seconds longest) const {
    const auto end = std::chrono::steady_clock::now() + longest;
    while (::waitpid(pid_, &status, flags | WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > end) {
        ADD_FAILURE() << "the program does not end, it said: " << out();
        return false;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  pid_t pid_ = -1;
  std::filesystem::path out_;
};

class Interposed : public testing::Test {
 protected:
  Interposed() {
    char name[] = "/tmp/firedrill-interposer-XXXXXX";
    folder_ = ::mkdtemp(name);
    environment_ = {{"LD_PRELOAD", FIREDRILL_INTERPOSER},
                    {"FIREDRILL_NCCL_DIR", (folder_ / "rings").string()},
                    {"STANDIN_DIR", folder_.string()},
                    {"STANDIN_DEADLINE_MS", "10000"},
                    // A preloaded library stands before the sanitizer's, which asks to be the first.
                    {"ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0"}};
  }
  ~Interposed() override { std::filesystem::remove_all(folder_); }

  // `faults`: JSON without the brackets around the list.
  void plan(const std::string& faults) { plan_text(R"({"schema": "firedrill.plan/1", "faults": [)" + faults + "]}"); }
  void plan_text(const std::string& text) {
    std::ofstream(plan_file()) << text;
    environment_["FIREDRILL_PLAN"] = plan_file();
  }
  std::string plan_file() const { return (folder_ / "plan.json").string(); }

  Program start(const Words& command) {
    return {command, environment_, folder_ / ("program" + std::to_string(++programs_))};
  }
  Program start_client(int ranks, const std::string& who, const std::string& script,
                       const Words& client = {FIREDRILL_CLIENT}) {
    Words command = client;
    command.insert(command.end(), {std::to_string(ranks), who, (folder_ / "id").string()});
    for (const std::string& word : words_of(script)) command.push_back(word);
    return start(command);
  }
  // One process a rank, all with the same script; the output of each.
  std::vector<Ended> run_ranks(int ranks, const std::string& script) {
    std::vector<Program> programs;
    for (int rank = 0; rank < ranks; ++rank) programs.push_back(start_client(ranks, std::to_string(rank), script));
    std::vector<Ended> ended;
    for (Program& program : programs) ended.push_back(program.end());
    return ended;
  }

  std::vector<RingDump> rings() const {
    auto found = read_rings(folder_ / "rings");
    EXPECT_TRUE(found.ok()) << describe(found.error());
    return found ? *std::move(found) : std::vector<RingDump>();
  }
  // That of the process which has this rank.
  RingDump ring_of(int rank) const {
    for (RingDump& ring : rings()) {
      if (!ring.comms.empty() && ring.comms[0].global_rank == rank) return ring;
    }
    ADD_FAILURE() << "no ring of rank " << rank;
    return {};
  }
  std::string journal() const { return content_of(folder_ / "rings" / "faults.jsonl"); }

  std::filesystem::path folder_;
  std::map<std::string, std::string> environment_;
  int programs_ = 0;
};

// Collectives and sends as "all_reduce 8 seq 1", in the order in which NCCL was called.
inline Words calls_of(const RingDump& ring) {
  Words lines;
  for (const CallRecord& call : ring.calls) {
    if (!is_collective(call.op) && !is_point_to_point(call.op)) continue;
    lines.push_back(std::string(to_string(call.op)) + " " + std::to_string(call.count) +
                    (call.state == State::skipped ? " skipped" : " seq " + std::to_string(call.sequence)));
  }
  return lines;
}

}  // namespace firedrill::interposer

// Check: one thing that is looked at before a long run. Each stands in a file of its own, in two halves: a probe that
// measures, and a pure judge that makes findings of measurements and needs.
//
// To add a check: write its file and enter it in checks() of preflight.cpp.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/job/layout.h"
#include "harness/preflight/team.h"

namespace firedrill::preflight {

enum class Level : std::uint8_t { quick, standard, full };
std::string_view to_string(Level level);

struct Options {
  Job job;
  Layout layout;
  std::filesystem::path directory;  // that will hold the checkpoints; made if it is not there
  Level level = Level::quick;
  std::filesystem::path restore = {};                        // an existing checkpoint; empty: none
  std::optional<std::chrono::nanoseconds> interval = {};     // between two checkpoints; absent: by the cluster table
  std::chrono::nanoseconds load = std::chrono::minutes(10);  // how long the load of level full goes on
  std::chrono::nanoseconds storage_deadline{0};              // behind which storage hangs; 0: by the level
  std::function<void(std::string_view)> doing = {};          // what is being done now; may be empty
  std::function<bool()> stop = {};  // asked again and again: true ends what is under way; may be empty
};

// What checks work with.
struct Bench {
  const Options& options;
  Team& team;
  // Set by each check of storage: only then does a check that cannot be thrown away touch the directory.
  bool storage_answers = false;

  void tell(std::string_view what) const {
    if (options.doing) options.doing(what);
  }
  bool stopped() const { return options.stop && options.stop(); }
  // Team::ask, ended by options.stop.
  Result<std::vector<RankAnswer>> ask(const Json& work, int ranks, std::chrono::nanoseconds deadline) const {
    return team.ask(work, ranks, deadline, options.stop);
  }
};

struct Check {
  std::string_view name;
  std::string_view summary;
  Level from = Level::quick;  // the lowest level that has it
  CheckResult (*run)(Bench&) = nullptr;
};

CheckResult check_machine(Bench& bench);
CheckResult check_storage(Bench& bench);
CheckResult check_memory(Bench& bench);
CheckResult check_exchange(Bench& bench);
CheckResult check_stragglers(Bench& bench);
CheckResult check_restore(Bench& bench);
CheckResult check_drills(Bench& bench);
CheckResult check_phases(Bench& bench);
CheckResult check_load(Bench& bench);

}  // namespace firedrill::preflight

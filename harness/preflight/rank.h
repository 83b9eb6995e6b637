// The ranks of a check: what the zygote's child does when it was started by a Team (team.h). `work` names a probe,
// which measures and gives numbers; judging them is the business of the program that asked.
#pragma once

#include <functional>
#include <memory>

#include "engine/os/launcher.h"
#include "engine/seam/file_system.h"
#include "engine/seam/transport.h"
#include "harness/preflight/line.h"

namespace firedrill::preflight {

// What a probe works with. A test puts trouble around the real ones.
struct ProbeSeams {
  std::function<std::unique_ptr<FileSystem>(FileSystem& real, int rank)> files = {};    // absent: the real one
  std::function<std::unique_ptr<Transport>(Transport& real, int rank)> transport = {};  // absent: the real one
  std::function<std::string(int rank)> address = {};  // to listen at; absent: the machine's own
  std::function<void(int rank)> start = {};           // before anything else
};

// One rank of a check, from the inside.
struct Probe {
  RankLine& line;
  const Json& work;
  const ProbeSeams& seams;
  int rank = 0;
  int ranks = 1;
};

// Whether this rank was started by a Team, and not by a world.
bool is_probe(const RankStart& start);
// Measures, says what it measured, and returns the process's exit code.
int run_probe_rank(RankStart start, const ProbeSeams& seams = {});

}  // namespace firedrill::preflight

// A planned fault: what, and where by logical position. Data only; parsing stands in harness/scenario, the decision
// whether it fires in trigger.h, what it then does in one decorator per kind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/seam/file_system.h"
#include "engine/seam/position.h"

namespace firedrill {

enum class FaultKind : std::uint8_t {
  kill,       // SIGKILL of one rank
  kill_node,  // all ranks of the rank's node; may also lose what the node had not synced
  io_error,   // EIO on an operation
  no_space,   // ENOSPC on a write, create or make_directory
};

// Operations of the other seams that faults can name, beside the file operations.
enum class SeamOp : std::uint8_t { file, compute, send, recv, collective, store };
inline constexpr int seam_op_count = 6;
std::string_view to_string(SeamOp op);
std::string_view to_string(FaultKind kind);  // as in a scenario

enum class When : std::uint8_t { before, after };
std::string_view to_string(When when);

// Matches calls of one rank. A field that is absent matches any.
struct Where {
  std::optional<int> attempt = 1;  // absent: any attempt
  int rank = 0;
  std::optional<std::int64_t> step;
  std::optional<Phase> phase;
  std::optional<SeamOp> op;       // absent: any seam call that the kind can be about
  std::optional<FileOp> file_op;  // with op == file
  std::string path;               // glob on the path of a file operation; empty: any
  int nth = 1;                    // the n-th matching call within one (attempt, step, phase); see trigger.h
  When when = When::before;
};

struct FaultSpec {
  FaultKind kind = FaultKind::kill;
  Where at;
  int times = 1;                     // how often it fires in one run; 0: without end (sticky)
  bool lose_unsynced_data = false;   // kill_node only
  bool lose_unsynced_names = false;  // kill_node only
  bool may_not_fire = false;         // the verdict does not wait for it
  int line = 0;                      // in the scenario file, for messages
};

// "kill rank 2 at step 3, backward, call 1": for people, reports and events.
std::string describe(const FaultSpec& fault);

struct FaultKindInfo {
  FaultKind kind;
  std::string_view name;  // as in a scenario
  std::string_view summary;
  bool in_process_world;
};
// Every kind that this build has, in the order of the list above.
const std::vector<FaultKindInfo>& fault_kinds();

}  // namespace firedrill

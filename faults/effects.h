// Effects: what a fault does to its surroundings. The world that hosts the ranks implements it; an injector calls it.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/base/result.h"
#include "engine/seam/file_system.h"
#include "engine/seam/position.h"
#include "faults/spec.h"

namespace firedrill {

// One call of a rank through a seam, as faults see it.
struct CallSite {
  SeamOp op = SeamOp::file;
  FileOp file_op = FileOp::create;    // with op == file
  std::string_view path = {};         // with op == file
  std::string_view second_path = {};  // the new name of a rename
};

// A fault that is about to take effect.
struct Firing {
  int fault = 0;  // index in the plan
  const FaultSpec& spec;
  const Position& position;  // of the rank, which also says which rank and attempt
  const CallSite& call;
};

class Effects {
 public:
  virtual ~Effects() = default;
  // Returns when the firing is on record outside of the rank; in the process world that is when the supervisor has
  // acknowledged it. On an error the fault takes no effect, and its call returns the error.
  virtual Status journal(const Firing& firing) = 0;
  // The calling rank dies here. In the sim world it returns, and every later call of the rank is `dead`.
  virtual void kill_rank() = 0;
  // Whether the calling rank is dead already, by a fault of another rank: its calls can hit nothing any more. A process
  // that is dead makes no calls; a world whose dead ranks still unwind must answer.
  virtual bool rank_dead() const { return false; }
  // All ranks of the calling rank's node die here; what the node had not synced may be lost.
  virtual void kill_node(bool lose_unsynced_data, bool lose_unsynced_names) = 0;
};

}  // namespace firedrill

// Effects: what a fault does to its surroundings. The world that hosts the ranks implements it; an injector calls it.
#pragma once

#include <cstdint>
#include <string_view>

#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/seam/collective_op.h"
#include "engine/seam/compute.h"
#include "engine/seam/file_system.h"
#include "engine/seam/position.h"
#include "engine/seam/transport.h"
#include "faults/spec.h"

namespace firedrill {

// A file operation in the making: what it would do, which a fault may change, and what the fault wants of its answer.
struct FileCall {
  std::int64_t offset = 0;               // write
  Value bytes = {};                      // write
  std::string_view written_before = {};  // write: the file that the rank wrote to before this one; may be empty
  bool skipped = false;                  // it is not made, and reports success
  bool stale = false;                    // its answer is that of an earlier time
  int hidden_looks = 0;                  // the name is not there for so many looks, this one included,
  Time hidden_until{0};                  // and until then
};

// A collective call in the making: which one it is, and what a fault wants of it.
struct CollectiveCall {
  CollectiveOp op = CollectiveOp::barrier;
  const Group& group;
  int peer = -1;              // send, recv: index in the group
  std::int64_t sequence = 0;  // in its stream
  std::string_view purpose = {};
  bool can_be_held = false;  // the rank need not wait for what it gives
  bool skipped = false;
  bool doubled = false;
  bool held = false;  // until the next call of the rank is made
  bool aborts = false;
  bool wrong_count = false;
  bool wrong_dtype = false;
  bool wrong_root = false;
  bool wrong_reduce_op = false;
};

// A message on its way to a peer, and what a fault wants of it.
struct MessageCall {
  int peer = 0;  // a rank
  bool dropped = false;
  bool doubled = false;
  bool late = false;  // for the next attempt
};

// What is wrong with a link from now on.
struct LinkTrouble {
  bool cut = false;    // its messages are lost
  Duration slower{0};  // they take longer
  int lose_every = 0;  // every n-th is lost, and comes when it was sent again;
  Duration again{0};   // so much later
  Duration lasts{0};   // 0: until the attempt ends
};

// One call of a rank through a seam, as faults see it.
struct CallSite {
  SeamOp op = SeamOp::file;
  FileOp file_op = FileOp::create;        // with op == file
  std::string_view path = {};             // with op == file
  std::string_view second_path = {};      // the new name of a rename
  FileCall* file = nullptr;               // with op == file: never absent where a fault fires
  CollectiveCall* collective = nullptr;   // with op == collective: as file
  MessageCall* message = nullptr;         // with op == send or recv: as file
  KernelKind kernel = KernelKind::other;  // with op == compute
  // What the call gave (compute, input: behind it, empty if it failed) or is about to take (send): a fault may put
  // something else in its place.
  Value* value = nullptr;
};

// As a journal writes it: 0 where it is none of files, else 1 + FileOp.
inline std::int64_t operation_number(const CallSite& call) {
  return call.op == SeamOp::file ? 1 + static_cast<std::int64_t>(call.file_op) : 0;
}

// What a journal says of the call: the path of a file, "dp[0-3] call 17 all_reduce grad", "message to rank 2"; empty.
std::string words_of(const CallSite& call);

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
  // The calling rank stops here, as by SIGSTOP: it says nothing more, and does nothing more, until it is killed. Where
  // a call returns nevertheless, every later one of the rank is `dead`.
  virtual void hang_rank() = 0;
  // The calling task goes on no more, whatever is aborted, until its rank is killed; then as above.
  virtual void stall_task() = 0;
  // Asks the calling rank for an orderly end, as by SIGTERM; it is killed when the job's cluster.grace is over.
  virtual void preempt_rank() = 0;
  // The calling rank's process ends here, with that code and without a word; then as above.
  virtual void exit_rank(int code) = 0;
  // All ranks of the calling rank's node die here; what the node had not synced may be lost.
  virtual void kill_node(bool lose_unsynced_data, bool lose_unsynced_names) = 0;
  // The disk below all faults of the rank.
  virtual FileSystem& storage() = 0;
  // Puts bytes into a stored file behind everybody's back; they are durable. The range lies within the file.
  virtual Status overwrite(std::string_view path, std::int64_t offset, const Value& bytes) = 0;
  // What the node changed in the file (or, with sync_directory, among the names of the directory) and has not synced
  // never becomes durable, whatever is synced later. A world that cannot lose power does nothing.
  virtual void forget_unsynced(FileOp sync, std::string_view path) = 0;
  // The node's clock, as modification times show it, is wrong by so much from now on.
  virtual void skew_clock(Duration by) = 0;
  // The other members of the rank's group of that name; the ranks of other nodes for "node", all others for "".
  virtual std::vector<int> others_in(std::string_view group) = 0;
  // The ranks of the calling rank's node, itself among them.
  virtual std::vector<int> node_ranks() = 0;
  // From now on, for what `from` sends to `to`. A world without links of its own has no such faults.
  virtual void trouble_link(int from, int to, const LinkTrouble& trouble) = 0;
  // The message comes to the peer in the next attempt, as one of this.
  virtual void send_late(int peer, Tag tag, const Value& value) = 0;
  virtual Time now() = 0;
  virtual Status sleep_until(Time time) = 0;
};

}  // namespace firedrill

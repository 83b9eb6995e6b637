// RestoreCheck: what a new attempt makes of one content of the disk. All ranks claim the attempt, find and restore,
// with the code of the engine (or of a mutant), and what they restored is compared with the golden of that step. One
// rank is one fiber that lives on from content to content, so that a check costs neither a start nor a rendezvous.
// Each check begins with garbage in all that restore must set.
//
// With the catalog of files a rank keeps its protocol object, too: to encode the state's structure anew would cost a
// third of the rate. None of what lives on in it reaches a decision of claim, find or restore: the structure is renewed
// when it differs; known checkpoints and whether a sweep is due are set anew by find, and read by publish alone, like
// the tombstones, the last step and the last trial; this catalog has no members. With RocksDB each check has a new one.
//
// The floor is not given to find: it only makes errors out of answers that the oracle rejects anyway.
// Threads: one object, one thread. Errors: in the answer; that something of `unread` was read fails a check of ours. A
// check that ended in trouble starts all ranks anew.
// A failed check of the harness or the faults that a rank runs into is thrown by check(): it is no answer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/ckpt/protocol.h"
#include "engine/model/transformer.h"
#include "engine/sim/machine.h"
#include "engine/sim/memo.h"
#include "faults/persistence/recorder.h"
#include "harness/explore/overlay.h"
#include "harness/explore/unread.h"
#include "harness/golden/golden.h"
#include "harness/world/world.h"

namespace firedrill {

// Whose checkpoints these are. References outlive the check.
struct CheckSubject {
  const Job& job;
  const Layout& layout;
  const Model& model;
  const RunIdentity& identity;
  const Golden& golden;
  ProtocolFactory protocol;
  int attempt = 2;  // the one that recovers; none before it has a higher number
  // What nobody may read of the contents to check. None: all may be read.
  const Unread* unread = nullptr;
};

struct CheckAnswer {
  bool restored = false;              // by all ranks
  bool fresh = false;                 // nothing is listed: the job would begin at step 0
  bool golden = false;                // what was restored equals the golden of the step
  std::optional<CheckpointId> found;  // agreed on by all ranks
  std::string trouble;                // why it is neither restored nor fresh, or what differs from the golden
};

class RestoreCheck {
 public:
  // `recorder`, if there is one, is told what the ranks do.
  explicit RestoreCheck(const CheckSubject& subject, const OverlayOptions& options = {},
                        crash::Recorder* recorder = nullptr);
  ~RestoreCheck();
  RestoreCheck(const RestoreCheck&) = delete;
  RestoreCheck& operator=(const RestoreCheck&) = delete;

  // Valid until the next one.
  const CheckAnswer& check(DiskContent& content);
  std::uint64_t checks() const { return checks_; }

 private:
  class Rank;
  struct Compared;

  void start();
  void conclude();
  void compare_with_golden(const CheckpointId& id);
  const Compared& compare_rank(std::size_t rank, std::int64_t step);

  CheckSubject subject_;
  crash::Recorder* recorder_;
  std::optional<UnreadGuard> guard_;
  Overlay overlay_;
  sim::FiberPool fibers_;
  sim::Machine machine_;
  sim::MemoTable memo_table_;
  DirectCompute direct_;
  sim::MemoCompute memo_;
  sim::Attempt* attempt_ = nullptr;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::size_t done_ = 0;
  bool running_ = false;
  std::string own_failure_;  // a failed check of the harness, in a rank of the check under way
  CheckAnswer answer_;
  std::uint64_t checks_ = 0;
  std::vector<std::unique_ptr<Compared>> compared_;
  std::vector<const Compared*> last_whole_;  // one per rank: together they held every tensor
};

}  // namespace firedrill

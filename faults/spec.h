// A planned fault: what, and where by logical position. Data only; parsing stands in harness/scenario, the decision
// whether it fires in trigger.h, what it then does in one decorator per kind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/seam/clock.h"
#include "engine/seam/file_system.h"
#include "engine/seam/position.h"

namespace firedrill {

enum class FaultKind : std::uint8_t {
  kill,                 // SIGKILL of one rank
  kill_node,            // all ranks of the rank's node; may also lose what the node had not synced
  io_error,             // EIO on an operation
  no_space,             // ENOSPC on a write, create or make_directory
  lose_unsynced_data,   // kill_node, and what it had written and not synced is lost
  lose_unsynced_names,  // kill_node, and the names it had made or changed and not synced are lost
  torn_write,           // a part of what is written does not land
  dropped_write,        // nothing of it lands
  short_write,          // only its first half lands
  misdirected_write,    // it lands elsewhere
  bit_flip_on_write,    // it lands with one bit flipped
  bit_flip_at_rest,     // one bit of a file that is about to be read has flipped
  failed_sync,          // EIO, and what was to be synced never becomes durable
  lying_sync,           // success, and nothing is durable
  slow_disk,            // an operation takes longer
  stale_listing,        // a listing without its newest name
  stale_stat,           // a size from before the file was written
  late_visibility,      // a name that others made is not there yet
  file_vanishes,        // a file goes between its listing and its opening
  clock_skew,           // the node's clock is wrong from then on
  hang,                 // SIGSTOP of one rank
  stall,                // the task is stuck, its rank's signs of life go on
  slow,                 // calls take longer
  preempt,              // SIGTERM of one rank, and SIGKILL after a grace time
  exit,                 // the process ends by itself in the middle of its work
  reorder_calls,        // two calls in a row of one rank change places
  skip_call,            // a call is left out; the rank goes on as if it had been alone in its group
  duplicate_call,       // a call is made twice
  wrong_count,          // with one element too few
  wrong_dtype,          // with elements of another type
  wrong_root,           // with the next member as root
  wrong_reduce_op,      // max in place of sum, else sum
  early_abort,          // the rank gives up in the middle of its work
  delay_message,        // a message leaves later
  drop_message,         // a message never arrives
  duplicate_message,    // a message arrives twice
  late_message,         // a message arrives in the next attempt, and not in its own
  partition,            // what crosses the border of the rank's node is lost
  slow_link,            // messages of some links take longer
  flaky_link,           // every n-th message of some links is lost and sent again, later
  slow_shard,           // rows of the training text come late
  unreadable_shard,     // they cannot be read
  bad_sample,           // one of them is garbage, and nobody is told
  shard_ends_early,     // the last of them is missing
  bit_flip,             // one bit of what a kernel computed is wrong
  nan,                  // one number of what a kernel computed is none
  exception,            // a kernel's code throws
  corrupt_payload,      // a message arrives as something else than was sent
};
inline constexpr int fault_kind_count = 48;

// Operations of the other seams that faults can name, beside the file operations.
enum class SeamOp : std::uint8_t { file, compute, send, recv, collective, store, input };
inline constexpr int seam_op_count = 7;
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

enum class Part : std::uint8_t { first, middle, last };
std::string_view to_string(Part part);
enum class Landing : std::uint8_t { offset, file };
std::string_view to_string(Landing landing);

// What a damaged computation gave.
enum class Target : std::uint8_t { activation, gradient, parameter, moment };
std::string_view to_string(Target target);
enum class PayloadDamage : std::uint8_t { bit, nan, wrong_shard };
std::string_view to_string(PayloadDamage damage);

struct FaultSpec {
  FaultKind kind = FaultKind::kill;
  Where at;
  int times = 1;                     // how often it fires in one run; 0: without end (sticky)
  bool lose_unsynced_data = false;   // kill_node only
  bool lose_unsynced_names = false;  // kill_node only
  Part lost = Part::last;            // torn_write only: the third that does not land and reads as zeros
  // misdirected_write only: further behind in the same file, or in the file that the rank wrote to before (if that lies
  // in the same directory).
  Landing lands_in = Landing::offset;
  int code = 0;                               // exit only: the exit code
  Target target = Target::activation;         // bit_flip and nan only
  PayloadDamage damage = PayloadDamage::bit;  // corrupt_payload only
  // slow, slow_disk, slow_shard: of the operation; late_visibility: for so long the name is not there
  Duration delay{0};
  int looks = 0;                 // late_visibility only: and for so many looks
  std::optional<int> peer = {};  // faults of messages and links: those between the rank and this one only
  std::string group = {};        // slow_link, flaky_link: the links to the other members of this group of the rank's
  bool one_way = false;          // partition: only what leaves the node is lost
  Duration lasts{0};             // faults of links: so long; 0: until the attempt ends
  int every = 3;                 // flaky_link only
  Duration ahead{0};             // clock_skew only
  Duration behind{0};            // clock_skew only
  bool may_not_fire = false;     // the verdict does not wait for it
  int line = 0;                  // in the scenario file, for messages
};

// "kill rank 2 at step 3, backward, call 1": for people, reports and events.
std::string describe(const FaultSpec& fault);

// What a fault of a kind does to what is stored, or to who stores it.
enum class Harm : std::uint8_t {
  none,           // answers come late or are old; nothing is lost
  death,          // ranks die
  silence,        // what peers wait for never comes, and nobody is told: only a watchdog ends that
  leave,          // ranks are told to leave in order
  error,          // the call reports an error
  write_damaged,  // what is stored is not what was written, and nobody is told
  rest_damaged,   // what was stored well is damaged later
  sync_undone,    // what was reported as durable is not
  call,           // a rank issues other calls than it should; what it computes from them is wrong
  message,        // messages are late, lost, doubled or go astray
  computation,    // what is computed, read or sent is wrong, and nobody is told
};

struct FaultKindInfo {
  FaultKind kind;
  std::string_view name;  // as in a scenario
  std::string_view summary;
  bool in_process_world = false;
  Harm harm = Harm::none;
  std::uint32_t file_ops = 0;   // a bit for each FileOp that it can be about; 0: any call of any seam
  bool has_after = true;        // `when: after` means something
  bool changes_result = false;  // it takes effect behind the call, on what that gave
  // What it can hit among files: those of a checkpoint (shards and manifests), which others can stand in for.
  bool checkpoints_only = false;
  std::uint32_t seams = 0;           // a bit for each SeamOp that it can be about; 0: as file_ops says
  std::uint32_t collective_ops = 0;  // with seams: a bit for each CollectiveOp; 0: any
};
// Every kind that this build has, in the order of the list above.
const std::vector<FaultKindInfo>& fault_kinds();
inline const FaultKindInfo& info_of(FaultKind kind) { return fault_kinds()[static_cast<std::size_t>(kind)]; }
constexpr std::uint32_t bit_of(SeamOp op) { return std::uint32_t{1} << static_cast<int>(op); }
// The kinds after which ranks are gone, or will be.
inline bool takes_ranks(FaultKind kind) {
  const Harm harm = info_of(kind).harm;
  return harm == Harm::death || harm == Harm::silence || harm == Harm::leave;
}
// The kinds that are about file operations only.
inline bool of_files(FaultKind kind) { return info_of(kind).file_ops != 0; }
// Whether it can be about a call of this seam at all.
inline bool can_be_about(FaultKind kind, SeamOp op) {
  const std::uint32_t seams = info_of(kind).seams;
  if (seams != 0) return (seams & bit_of(op)) != 0;
  return op == SeamOp::file || !of_files(kind);
}

}  // namespace firedrill

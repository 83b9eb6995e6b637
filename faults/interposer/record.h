// The ring file: what an interposed process leaves behind. A header, a table of its communicators, a table of the
// plan's faults, and a ring of entries, one for each NCCL call. It is mapped shared, so it stays when the process is
// killed.
//
// Layout: fixed, native byte order, `ring_version` changes with it. Writing is in ring.h, reading in ring_reader.h.
// An entry is whole when its stamp is its number + 1; while it is being written the stamp is 0. What says how the call
// went on (state, result, duration) is filled in later and stays as it was at the entry if the process died inside.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace firedrill::interposer {

inline constexpr std::uint64_t ring_magic = 0x31474e52'44464346;  // "FCFDRNG1"
inline constexpr std::uint32_t ring_version = 1;
inline constexpr int comm_slot_count = 256;  // a power of two
inline constexpr int fault_slot_count = 64;  // faults in one plan
inline constexpr int type_count = 12;        // of NCCL's data types
inline constexpr int reduction_count = 5;    // of NCCL's own reduce operations; the program's own have higher numbers
inline constexpr std::int32_t unknown = -1;

enum class Op : std::uint8_t {
  none,
  all_reduce,
  broadcast,  // ncclBroadcast and ncclBcast
  reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  gather,
  scatter,
  send,
  recv,
  group_start,
  group_end,
  comm_init,
  comm_init_all,
  comm_split,
  comm_shrink,
  comm_finalize,
  comm_destroy,
  comm_abort,
  comm_revoke,
  async_error,  // ncclCommGetAsyncError reported another error than the time before
  fault,        // a line of the journal
};
inline constexpr int op_count = 23;
std::string_view to_string(Op op);
constexpr bool is_point_to_point(Op op) { return op == Op::send || op == Op::recv; }
constexpr bool is_collective(Op op) { return op >= Op::all_reduce && op <= Op::scatter; }

std::string_view type_name(std::int32_t dtype);       // "float32"; "" if there is none
std::string_view reduction_name(std::int32_t redop);  // "sum"; "custom" for one that the program made; "" if none
std::string_view result_name(std::int32_t result);    // "success"

enum class Kind : std::uint8_t { delay, skip, reorder, wrong_count, kill, hang, stall };
inline constexpr int kind_count = 7;
std::string_view to_string(Kind kind);

enum class FaultEvent : std::uint8_t {
  none,
  fired,      // it takes effect now
  held,       // reorder: the call is kept back until the next one comes
  not_fired,  // it was due, or the program has ended before it was; see Reason
};
inline constexpr int fault_event_count = 4;
std::string_view to_string(FaultEvent event);

enum class Reason : std::uint8_t {
  none,
  program_waited,      // reorder: the program waited between the two calls, or used the stream otherwise
  other_communicator,  // reorder: a call for another communicator came in between
  group_boundary,      // reorder: a group began or ended in between
  nothing_followed,    // reorder: no second call came within the time
  waits_out_of_sight,  // reorder: the program's CUDA runtime is linked statically, so its waits cannot be seen
  nothing_to_take,     // wrong_count: the program's own count is 0
  count_not_below,     // wrong_count: the planned count is not below the program's, whose buffers it would overrun
  another_fault,       // another fault of the plan hit the same call, or the next one
  used_up,             // it has fired before in this run, as the journal says
  program_ended,       // before the nth matching call, or while a call was held
};
inline constexpr int reason_count = 11;
std::string_view to_string(Reason reason);  // a sentence

enum class State : std::int32_t {
  entered,   // inside NCCL
  returned,  // NCCL returned, which for an operation means: it is in its stream or group
  skipped,   // a fault left it out: NCCL never saw it
};
inline constexpr int state_count = 3;
std::string_view to_string(State state);

struct RingEntry {
  std::atomic<std::uint64_t> stamp;  // number + 1; 0 while it is written
  std::uint64_t time;                // monotonic, ns
  std::uint64_t comm;                // id, the same on all ranks of it; 0: none or unknown
  std::uint64_t call;                // the program's n-th operation on this communicator, from 1
  std::uint64_t sequence;            // as NCCL saw it, from 1: collectives, and apart from them sends and receives
  std::uint64_t count;               // elements, as NCCL saw it
  std::uint64_t asked;               // elements, as the program asked; differs under wrong_count
  std::uint64_t stream;              // the stream's handle
  std::uint64_t group;               // number of the group (ncclGroupStart) in this process; 0: in none
  std::uint32_t thread;
  std::int32_t rank;  // in the communicator
  std::int32_t size;  // of the communicator
  std::int32_t dtype;
  std::int32_t redop;
  std::int32_t peer;  // root, or the other rank of a send or receive
  Op op;
  FaultEvent event;  // of op == fault
  Reason reason;     // of op == fault
  std::uint8_t padding;
  std::int32_t fault;  // number in the plan, from 0, of what hit this call; `unknown`: nothing did
  std::atomic<State> state;
  std::atomic<std::int32_t> result;     // ncclResult_t
  std::atomic<std::uint64_t> duration;  // ns inside NCCL
  std::uint64_t padding2;
};
static_assert(sizeof(RingEntry) == 128);

struct CommSlot {
  std::atomic<std::uint64_t> handle;  // of the live communicator; 0: never used, 1: it is gone
  std::uint64_t id;                   // the same on all ranks
  std::uint64_t parent;               // id of the one it was split from; 0: none
  std::atomic<std::int32_t> rank;
  std::atomic<std::int32_t> size;
  std::int32_t global_rank;  // of the process or device in the whole job: what a plan means by rank
  std::uint32_t number;      // the n-th communicator of this process, from 1
  Op made_by;                // none: first seen in a call
  std::uint8_t padding[7];
  std::atomic<std::uint64_t> calls;
  std::atomic<std::uint64_t> collectives;
  std::atomic<std::uint64_t> point_to_points;
  std::atomic<std::uint64_t> children;  // splits and shrinks
  std::atomic<std::int32_t> async_error;
  std::int32_t padding2;
};
static_assert(sizeof(CommSlot) == 88);

struct FaultSlot {
  Kind kind;
  std::uint8_t padding[3];
  std::int32_t rank;
  std::atomic<std::uint64_t> matched;  // calls of that rank that fit `at`
  std::atomic<std::uint64_t> fired;    // in this process
  std::uint64_t fired_before;          // in earlier processes of this run
  std::atomic<FaultEvent> last_event;
  std::atomic<Reason> reason;
  std::uint8_t padding2[6];
};
static_assert(sizeof(FaultSlot) == 40);

struct RingHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t entry_size;
  std::uint32_t capacity;  // entries, a power of two
  std::uint32_t faults;    // of the plan
  std::uint64_t plan_digest;
  std::int64_t pid;
  std::int32_t process_rank;  // from the environment; `unknown`: the communicators tell
  std::int32_t attempt;
  std::uint64_t started;             // monotonic, ns
  std::atomic<std::uint64_t> head;   // entries ever begun
  std::atomic<std::uint32_t> comms;  // ever made
  std::atomic<std::uint32_t> ended;  // 1: the program ended by itself
  char host[64];
  char program[256];
  char plan[512];
};
static_assert(sizeof(RingHeader) <= 1024);

// Offsets in the file.
inline constexpr std::uint64_t comms_offset = 1024;
inline constexpr std::uint64_t faults_offset = comms_offset + comm_slot_count * sizeof(CommSlot);
inline constexpr std::uint64_t entries_offset =
    (faults_offset + fault_slot_count * sizeof(FaultSlot) + 4095) / 4096 * 4096;
constexpr std::uint64_t ring_file_size(std::uint64_t capacity) { return entries_offset + capacity * sizeof(RingEntry); }

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<State>::is_always_lock_free);

}  // namespace firedrill::interposer

// Reading ring files, of processes that live, have ended or were killed, without disturbing them.
// Threads: pure functions. Errors: not_found, io_error, corrupted (no ring, or one of another version).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "faults/interposer/nccl_plan.h"
#include "faults/interposer/record.h"

namespace firedrill::interposer {

struct CallRecord {
  std::uint64_t number = 0;  // in this process, from 0
  std::uint64_t time = 0;    // monotonic, ns
  std::uint64_t comm = 0;
  std::uint64_t call = 0;
  std::uint64_t sequence = 0;
  std::uint64_t count = 0;
  std::uint64_t asked = 0;
  std::uint64_t stream = 0;
  std::uint64_t group = 0;
  std::uint32_t thread = 0;
  std::int32_t rank = unknown;
  std::int32_t size = unknown;
  std::int32_t dtype = unknown;
  std::int32_t redop = unknown;
  std::int32_t peer = unknown;
  Op op = Op::none;
  FaultEvent event = FaultEvent::none;
  Reason reason = Reason::none;
  std::int32_t fault = unknown;
  State state = State::entered;
  std::int32_t result = 0;
  std::uint64_t duration = 0;
};

struct CommRecord {
  std::uint64_t id = 0;
  std::uint64_t parent = 0;
  std::int32_t rank = unknown;
  std::int32_t size = unknown;
  std::int32_t global_rank = unknown;
  std::uint32_t number = 0;
  Op made_by = Op::none;
  bool gone = false;
  std::uint64_t calls = 0;
  std::int32_t async_error = 0;
};

struct FaultRecord {
  Kind kind = Kind::delay;
  std::int32_t rank = 0;
  std::uint64_t matched = 0;
  std::uint64_t fired = 0;
  std::uint64_t fired_before = 0;
  FaultEvent last_event = FaultEvent::none;
  Reason reason = Reason::none;
};

struct RingDump {
  std::filesystem::path file;
  std::int64_t pid = 0;
  std::int32_t process_rank = unknown;
  std::int32_t attempt = 1;
  std::uint64_t plan_digest = 0;
  std::uint64_t started = 0;
  std::uint64_t begun = 0;  // entries ever begun; those before the ring's capacity are written over
  bool ended = false;       // the program ended by itself, not by a signal or _exit
  std::string host;
  std::string program;
  std::string plan;
  std::uint64_t incomplete = 0;     // entries that were being written as they were read, or as the process died
  std::vector<CommRecord> comms;    // by number
  std::vector<FaultRecord> faults;  // as in the plan
  std::vector<CallRecord> calls;    // by number
};

Result<RingDump> read_ring(const std::filesystem::path& file);
// Every ring of a folder, by name.
Result<std::vector<RingDump>> read_rings(const std::filesystem::path& folder);

std::string to_text(const CallRecord& call);
// The whole ring, with at most the `last` newest calls.
std::string to_text(const RingDump& ring, std::size_t last);

// What became of the n-th fault of a plan over all rings: "fired in process 17" or "not fired: WHY".
struct FaultOutcome {
  bool fired = false;
  std::string text;
};
FaultOutcome outcome_of(const NcclPlan& plan, std::size_t fault, const std::vector<RingDump>& rings);

}  // namespace firedrill::interposer

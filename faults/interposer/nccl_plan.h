// The faults of a plan file (schema firedrill.plan/1) that the interposer can do, read strictly: a plan that cannot
// take effect as written is refused with the file, the place in it and the remedy, never run as if it were empty.
//
// A fault reads like every fault of a plan: its kind with its options, and where it happens.
//   {"delay": {"delay": "50ms"}, "at": {"rank": 1, "nth": 3, "op": "all_reduce"}}
//   {"skip": {}, ...}   {"reorder": {"hold": "1s"}, ...}   {"wrong_count": {"count": 3}, ...}
//   {"kill": {}, ...}   {"hang": {}, ...}   {"stall": {}, ...}
// `at` has rank (needed), nth, op, comm, attempt and when; beside it may stand times and may_not_fire. Other fields of
// the plan (job, layout, ...) are the world's and are passed over.
// Threads: pure functions. Errors: invalid_input, not_found, io_error.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "faults/interposer/record.h"

namespace firedrill::interposer {

// Which calls a fault is about; what is absent matches any.
struct CallPattern {
  std::int32_t rank = 0;                    // in the whole job
  std::optional<std::int32_t> attempt = 1;  // absent: any
  std::optional<Op> op;                     // one operation; absent: any operation
  bool collectives_only = false;            // `op: collective`
  std::optional<std::uint32_t> comm;        // the n-th communicator that the process made, from 1
  std::uint64_t nth = 1;                    // of the matching calls of that rank in one process
  bool after = false;                       // `when: after`
};

struct NcclFault {
  Kind kind = Kind::delay;
  CallPattern at;
  std::uint64_t times = 1;  // in one run; 0: at every matching call from the nth on
  bool may_not_fire = false;
  std::chrono::nanoseconds delay{0};                        // delay
  std::chrono::nanoseconds hold = std::chrono::seconds(1);  // reorder: longest wait for the second call
  std::optional<std::uint64_t> count;                       // wrong_count; absent: one less than the program's
};

struct NcclPlan {
  std::vector<NcclFault> faults;
  std::uint64_t digest = 0;  // of the file's text
};

// "skip rank 1 at all_reduce 3": for people.
std::string describe(const NcclFault& fault);
bool matches(const CallPattern& at, Op op, std::int32_t global_rank, std::uint32_t comm_number);

Result<NcclPlan> nccl_plan_from_json(std::string_view text, const std::string& origin);
Result<NcclPlan> read_nccl_plan(const std::string& file);

}  // namespace firedrill::interposer

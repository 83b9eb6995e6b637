// Over what the ranks of the process world talk: TCP between any two, or NCCL where each rank has a GPU of its own.
//
// NCCL refuses two ranks on one GPU; such ranks, and all of a job on CPUs, use TCP, and what lies on a GPU is staged
// through host memory. `collectives: native` (NCCL's own sums) has no such way out and is refused where NCCL cannot be
// had. Without -DFIREDRILL_CUDA there is no NCCL, and nccl_world says so.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "engine/comm/nccl/nccl_collectives.h"
#include "engine/job/layout.h"
#include "engine/seam/clock.h"
#include "engine/seam/store.h"
#include "harness/plan/plan.h"

namespace firedrill {

enum class Wire : std::uint8_t { tcp, nccl };

// For `ranks` ranks on a machine with `gpus` GPUs. Pure; the same on all ranks of an attempt. Errors: invalid_input,
// with the remedy.
Result<Wire> wire_of(const Job& job, int ranks, int gpus);

// Whether a plan's world can do the sums that its job wants, and its golden can be had. Errors: invalid_input.
Status sums_are_offered(const Plan& plan, int gpus);

// The groups of a rank for which NCCL has to be connected: those that have more than one member on any rank, in an
// order that all ranks share. Who is in none of a kind (the tied weight's, between first and last stage) has a group of
// its own in that place, as splitting a communicator takes everybody.
std::vector<NcclGroup> nccl_groups(const Job& job, const Layout& layout, int rank);
// That of the second task.
std::vector<NcclGroup> nccl_publish_group(const Job& job, const Layout& layout, int rank);

struct NcclTask {
  std::string_view key;  // in the store; new for each attempt and task
  int rank = 0;
  int world_size = 1;
  int device = 0;
};
// The communicator of all ranks for one of their tasks. All ranks call it at the same place of their lives. The clock
// must outlive it. Errors: unavailable, timeout, aborted.
Result<std::unique_ptr<Communicator>> nccl_world(Store& store, Clock& clock, const NcclTask& task, Time deadline);

}  // namespace firedrill

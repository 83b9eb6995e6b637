// Which communicators live in this process: handle -> size, rank, id that is the same on all ranks of it. The table
// lies in the ring file, so it is readable after death. Threads: any. Looking one up takes no lock; adding one does.
#pragma once

#include <cstdint>

#include "faults/interposer/preload/nccl_api.h"
#include "faults/interposer/record.h"

namespace firedrill::interposer {

struct Made {
  std::uint64_t id = 0;
  std::uint64_t parent = 0;
  std::int32_t rank = unknown;  // unknown: NCCL is asked
  std::int32_t size = unknown;
  std::int32_t global_rank = unknown;  // unknown: that of the process, else the rank
  Op by = Op::none;
};

// Its slot; one that is not known (its making was out of sight) is entered with an id of 0. nullptr: the table is full.
CommSlot* find_comm(ncclComm_t comm) noexcept;
// Without entering it.
CommSlot* known_comm(ncclComm_t comm) noexcept;
void add_comm(ncclComm_t comm, const Made& made) noexcept;
// To be added when the outermost group ends, since NCCL may set *comm only then.
void add_comm_after_group(ncclComm_t* comm, const Made& made) noexcept;
void add_pending_comms() noexcept;
void comm_is_gone(ncclComm_t comm) noexcept;

std::uint64_t hash_bytes(const void* bytes, std::size_t size, std::uint64_t seed) noexcept;

}  // namespace firedrill::interposer

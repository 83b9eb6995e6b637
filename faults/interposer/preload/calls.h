// One operation of NCCL as data, so that a fault may keep it back, change it or leave it out.
#pragma once

#include <cstddef>
#include <cstdint>

#include "faults/interposer/preload/nccl_api.h"
#include "faults/interposer/ring.h"

namespace firedrill::interposer {

struct Call {
  Op op = Op::none;
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t count = 0;
  ncclDataType_t dtype = ncclInt8;
  ncclRedOp_t redop = ncclSum;
  int peer = unknown;  // or root
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  bool old_broadcast = false;  // ncclBcast
};

// A call and who makes it.
struct Numbered {
  Call call;
  CommSlot* comm = nullptr;  // nullptr: the table of communicators is full
  std::uint64_t number = 0;  // of the program's calls on the communicator
  std::size_t asked = 0;     // the program's count
  std::int32_t fault = unknown;
};

// What every wrapped operation does: count it, let a fault have it, or make it and record it.
ncclResult_t wrapped(const Call& call) noexcept;

// The real function, recorded.
ncclResult_t make_and_record(const Numbered& numbered) noexcept;
void record_skipped(const Numbered& numbered) noexcept;

// Records an event that is no operation (groups, the life of communicators) around a call of the real function.
class Event {
 public:
  Event(Op op, const CommSlot* comm, std::uint64_t group = 0) noexcept;
  ncclResult_t done(ncclResult_t result) noexcept;

 private:
  Claim claim_;
  std::uint64_t began_;
};

}  // namespace firedrill::interposer

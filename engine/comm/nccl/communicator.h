// Communicator: what NCCL gives to one group of ranks, on bytes in host memory: sends and receives that go out
// together, and reductions in NCCL's own order. nccl_communicator.h is the real one; tests have one of their own, since
// this needs no GPU to be understood.
//
// Sizes must be known on both sides. Every wait takes a deadline and ends early on abort; after an error the
// communicator is at its end. Members are indices in the group.
// Threads: one call at a time, but for abort, which may come from any thread.
// Errors: aborted, timeout, unavailable (what NCCL or CUDA says).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/result.h"
#include "engine/seam/collectives.h"

namespace firedrill {

class Communicator {
 public:
  virtual ~Communicator() = default;
  // One grouped call: outgoing[i] goes to member i, incoming[i] comes from it; empty ones and the own one are left out.
  virtual Status exchange(std::span<const std::span<const std::byte>> outgoing,
                          std::span<const std::span<std::byte>> incoming, Time deadline) = 0;
  // Does not wait for the receiver: the bytes may be reused when it returns. Of one pair, in order.
  virtual Status send(int member, std::span<const std::byte> bytes, Time deadline) = 0;
  virtual Status receive(int member, std::span<std::byte> bytes, Time deadline) = 0;
  // `count` elements of f32 or i64, added up in an order of NCCL's own: the same on every run of one layout only.
  virtual Status all_reduce(DType dtype, std::span<const std::byte> in, std::span<std::byte> out, ReduceOp op,
                            Time deadline) = 0;
  // A communicator of those that give the same colour, in the order of their keys. All members call it.
  virtual Result<std::unique_ptr<Communicator>> split(int color, int key, Time deadline) = 0;
  virtual void abort() = 0;
};

}  // namespace firedrill

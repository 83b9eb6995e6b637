// NcclCommunicator: a Communicator that is one of NCCL's, on one GPU, with host memory staged through it.
//
// Nothing blocks inside NCCL: communicators are made not to, and every wait asks for asynchronous errors
// (ncclCommGetAsyncError), for an abort from outside and for its deadline in turn. Whoever gives up aborts the
// communicator (ncclCommAbort), which also ends what is still on the GPU.
//
// One process is one rank on one GPU; NCCL refuses two ranks on one GPU.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string_view>

#include "engine/comm/cuda/staging_buffer.h"
#include "engine/comm/nccl/communicator.h"
#include "engine/seam/clock.h"
#include "engine/seam/store.h"

namespace firedrill {

struct NcclPlace {
  int rank = 0;
  int world_size = 1;
  int device = 0;  // of this process
};

class NcclCommunicator final : public Communicator {
 public:
  // The communicator of all ranks. Rank 0 leaves NCCL's id in the store under `key`, which must be new for each
  // attempt. `clock` must outlive it. Errors: those of the store, timeout, unavailable.
  static Result<std::unique_ptr<Communicator>> of_world(Store& store, std::string_view key, Clock& clock,
                                                        const NcclPlace& place, Time deadline);
  ~NcclCommunicator() override;

  Status exchange(std::span<const std::span<const std::byte>> outgoing, std::span<const std::span<std::byte>> incoming,
                  Time deadline) override;
  Status send(int member, std::span<const std::byte> bytes, Time deadline) override;
  Status receive(int member, std::span<std::byte> bytes, Time deadline) override;
  Status all_reduce(DType dtype, std::span<const std::byte> in, std::span<std::byte> out, ReduceOp op,
                    Time deadline) override;
  Result<std::unique_ptr<Communicator>> split(int color, int key, Time deadline) override;
  void abort() override { abort_asked_ = true; }

 private:
  NcclCommunicator(Clock& clock, int device) : clock_(clock), device_(device) {}
  // What a send still needs until it is done.
  struct Pending {
    StagingBuffer buffer;
    cudaEvent_t done = nullptr;
  };

  Status prepare();
  Status usable() const;
  // Until the last call on the communicator is out of NCCL's hands.
  Status wait_for_nccl(Time deadline);
  // Until all that is on the stream is done.
  Status wait_for_stream(Time deadline);
  Status one_more_look(Time deadline);
  Status move(std::span<const std::span<const std::byte>> outgoing, std::span<const std::span<std::byte>> incoming);
  Status give_up(Error error);
  Status let_go_of_sent();

  Clock& clock_;
  int device_;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  StagingBuffer out_;
  StagingBuffer in_;
  std::deque<Pending> pending_;
  std::atomic<bool> abort_asked_ = false;
};

}  // namespace firedrill

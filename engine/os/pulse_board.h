// PulseBoard: the pulses of an attempt's ranks, in memory that their processes share with the supervisor: where a rank
// stands that has been stopped or killed can still be read there. The supervisor makes the board; each rank's process
// opens its own place on it by the board's path.
//
// Threads: as Pulse. The memory goes with the last process that has it open.
#pragma once

#include <string>

#include "engine/base/result.h"
#include "engine/os/descriptor.h"
#include "engine/seam/pulse.h"

namespace firedrill {

// Shared memory of a process, unmapped with it.
class SharedMemory {
 public:
  SharedMemory() = default;
  // Of the file, from its start. Errors: unavailable.
  static Result<SharedMemory> map(const Descriptor& file, std::size_t bytes);
  SharedMemory(SharedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~SharedMemory();

  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

class PulseBoard {
 public:
  // Errors: unavailable.
  static Result<PulseBoard> make(int ranks);

  // By which a process of the same user opens the board while this one lives.
  std::string path() const;
  PulseReading of(int rank) const { return pulses()[rank].read(); }

 private:
  const RankPulse* pulses() const { return static_cast<const RankPulse*>(memory_.data()); }

  Descriptor file_;
  SharedMemory memory_;
};

// A rank's own place on a board.
class PulsePlace {
 public:
  // Errors: unavailable, with the path.
  static Result<PulsePlace> open(const std::string& board, int rank);

  RankPulse& pulse() const { return static_cast<RankPulse*>(memory_.data())[rank_]; }

 private:
  SharedMemory memory_;
  int rank_ = 0;
};

}  // namespace firedrill

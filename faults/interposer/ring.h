// Writing a ring file (record.h). Making one allocates and calls the system; claiming and publishing an entry does
// neither, takes no lock, and may be done by any thread and inside a signal handler.
// Errors: io_error, already_exists (the folder belongs to somebody else), no_space.
#pragma once

#include <cstddef>
#include <string>

#include "engine/base/result.h"
#include "faults/interposer/record.h"

namespace firedrill::interposer {

struct RingOptions {
  std::string folder;             // made if it is not there, readable by the user only
  std::uint32_t capacity = 4096;  // entries; rounded up to a power of two
  std::uint64_t plan_digest = 0;
  std::uint32_t faults = 0;
  std::int32_t process_rank = unknown;
  std::int32_t attempt = 1;
  std::string plan;  // its path, for people
};

struct Ring {
  RingHeader* header = nullptr;
  CommSlot* comms = nullptr;
  FaultSlot* faults = nullptr;
  RingEntry* entries = nullptr;
  std::uint64_t mask = 0;
};

// The number of an entry that is being written.
struct Claim {
  RingEntry* entry = nullptr;
  std::uint64_t number = 0;
};

inline Claim claim(const Ring& ring) {
  const std::uint64_t number = ring.header->head.fetch_add(1, std::memory_order_relaxed);
  RingEntry* entry = &ring.entries[number & ring.mask];
  entry->stamp.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);  // what follows is not seen before the 0 is
  return {entry, number};
}
inline void publish(const Claim& claim) { claim.entry->stamp.store(claim.number + 1, std::memory_order_release); }
// Whether the entry has not been written over since; then what comes later may be added to it.
inline bool still_there(const Claim& claim) {
  return claim.entry->stamp.load(std::memory_order_relaxed) == claim.number + 1;
}

// The file is called HOST-PID.ring, or HOST-PID-N.ring where that name is taken.
Result<Ring> make_ring(const RingOptions& options);
void unmap_ring(Ring& ring);

// Makes the folder with mode 0700 if it is absent; refuses one that is a link or belongs to another user.
Status claim_folder(const std::string& folder);

std::uint64_t monotonic_ns();

}  // namespace firedrill::interposer

#include "engine/os/pulse_board.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <system_error>

namespace firedrill {
namespace {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free,
              "an atomic with a lock cannot be shared by processes");

Error unavailable(std::string_view what) {
  return Error{.code = Code::unavailable,
               .message = fmt::format("{}: {}", what, std::generic_category().message(errno)),
               .hint = "the pulses of ranks need shared memory (memfd_create) and /proc of the supervisor"};
}

std::size_t bytes_of(int ranks) { return static_cast<std::size_t>(ranks) * sizeof(RankPulse); }

}  // namespace

Result<SharedMemory> SharedMemory::map(const Descriptor& file, std::size_t bytes) {
  void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
  if (data == MAP_FAILED) return unavailable("shared memory cannot be mapped");
  SharedMemory memory;
  memory.data_ = data;
  memory.bytes_ = bytes;
  return memory;
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

Result<PulseBoard> PulseBoard::make(int ranks) {
  PulseBoard board;
  board.file_ = Descriptor(::memfd_create("firedrill-pulses", MFD_CLOEXEC));
  if (!board.file_.valid()) return unavailable("no shared memory for the pulses of ranks");
  if (::ftruncate(board.file_.number(), static_cast<off_t>(bytes_of(ranks))) != 0) {
    return unavailable(fmt::format("no {} bytes of shared memory for the pulses of ranks", bytes_of(ranks)));
  }
  FD_TRY(board.memory_, SharedMemory::map(board.file_, bytes_of(ranks)));
  auto* const pulses = static_cast<RankPulse*>(board.memory_.data());
  for (int rank = 0; rank < ranks; ++rank) new (pulses + rank) RankPulse;
  return board;
}

std::string PulseBoard::path() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), file_.number()); }

Result<PulsePlace> PulsePlace::open(const std::string& board, int rank) {
  const Descriptor file(::open(board.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.valid()) return unavailable(fmt::format("the board of pulses {} cannot be opened", board));
  PulsePlace place;
  place.rank_ = rank;
  FD_TRY(place.memory_, SharedMemory::map(file, bytes_of(rank + 1)));
  return place;
}

}  // namespace firedrill

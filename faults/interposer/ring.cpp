#include "faults/interposer/ring.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

namespace firedrill::interposer {
namespace {

Error from_errno(std::string_view what, const std::string& name, int number) {
  return Error{.code = number == ENOSPC ? Code::no_space : Code::io_error,
               .message = fmt::format("cannot {} {}: {}", what, name, std::strerror(number)),
               .hint = "FIREDRILL_NCCL_DIR names a folder of a local or in-memory file system that you may write to"};
}

void copy_text(char* target, std::size_t size, std::string_view text) {
  const std::size_t length = std::min(size - 1, text.size());
  std::memcpy(target, text.data(), length);
  target[length] = 0;
}

std::string program_name() {
  char name[256] = {};
  const ssize_t length = ::readlink("/proc/self/exe", name, sizeof name - 1);
  return length > 0 ? std::string(name, static_cast<std::size_t>(length)) : std::string();
}

int create_file(const std::string& folder, const char* host, std::string& name) {
  for (int n = 1; n <= 1000; ++n) {  // a process id comes again, and so does a process that forked
    name = n == 1 ? fmt::format("{}/{}-{}.ring", folder, host, ::getpid())
                  : fmt::format("{}/{}-{}-{}.ring", folder, host, ::getpid(), n);
    const int file = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

}  // namespace

std::uint64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);  // allowed: other people's programs run in real time
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

Status claim_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) == 0) return {};
  if (errno != EEXIST) return from_errno("make the folder", folder, errno);
  struct stat found {};
  if (::lstat(folder.c_str(), &found) != 0) return from_errno("look at the folder", folder, errno);
  if (S_ISDIR(found.st_mode) && found.st_uid == ::geteuid()) return {};
  return Error{.code = Code::already_exists,
               .message = fmt::format("{} is a link, no folder, or belongs to another user", folder),
               .hint = "set FIREDRILL_NCCL_DIR to a folder of your own"};
}

Result<Ring> make_ring(const RingOptions& options) {
  FD_TRY_VOID(claim_folder(options.folder));
  const std::uint64_t capacity = std::bit_ceil(std::max<std::uint32_t>(options.capacity, 16));
  char host[64] = {};
  if (::gethostname(host, sizeof host - 1) != 0 || host[0] == 0) copy_text(host, sizeof host, "host");
  std::string name;
  const int file = create_file(options.folder, host, name);
  if (file < 0) return from_errno("make the ring", name, errno);
  const std::uint64_t size = ring_file_size(capacity);
  // Without its blocks a full disk would be a SIGBUS in the middle of a call.
  const int failure = ::posix_fallocate(file, 0, static_cast<off_t>(size));
  void* at = failure == 0 ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  const int number = failure != 0 ? failure : errno;
  ::close(file);
  if (at == MAP_FAILED) {
    ::unlink(name.c_str());
    return from_errno("map the ring", name, number);
  }
  auto* bytes = static_cast<char*>(at);
  Ring ring{.header = new (bytes) RingHeader{},
            .comms = reinterpret_cast<CommSlot*>(bytes + comms_offset),
            .faults = reinterpret_cast<FaultSlot*>(bytes + faults_offset),
            .entries = reinterpret_cast<RingEntry*>(bytes + entries_offset),
            .mask = capacity - 1};
  RingHeader& header = *ring.header;
  header.version = ring_version;
  header.entry_size = sizeof(RingEntry);
  header.capacity = static_cast<std::uint32_t>(capacity);
  header.faults = options.faults;
  header.plan_digest = options.plan_digest;
  header.pid = ::getpid();
  header.process_rank = options.process_rank;
  header.attempt = options.attempt;
  header.started = monotonic_ns();
  copy_text(header.host, sizeof header.host, host);
  copy_text(header.program, sizeof header.program, program_name());
  copy_text(header.plan, sizeof header.plan, options.plan);
  std::atomic_thread_fence(std::memory_order_release);
  header.magic = ring_magic;  // last: what has it is whole
  return ring;
}

void unmap_ring(Ring& ring) {
  if (ring.header) ::munmap(ring.header, ring_file_size(ring.mask + 1));
  ring = {};
}

}  // namespace firedrill::interposer

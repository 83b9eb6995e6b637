#include "faults/interposer/standin/exchange.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "faults/interposer/ring.h"

namespace standin {
namespace {

std::uint64_t deadline() {
  static const char* text = std::getenv("STANDIN_DEADLINE_MS");
  const std::uint64_t ms = text ? std::strtoull(text, nullptr, 10) : 20'000;
  return firedrill::interposer::monotonic_ns() + ms * 1'000'000;
}

// Looks again and again, as a kernel of NCCL does.
template <class Condition>
ncclResult_t wait_until(Shared& shared, const Condition& condition) {
  const std::uint64_t end = deadline();
  while (!condition()) {
    if (shared.failed.load() != 0) return ncclRemoteError;
    if (firedrill::interposer::monotonic_ns() > end) return ncclSystemError;
    std::this_thread::yield();
  }
  return ncclSuccess;
}

std::size_t size_of(int dtype) {
  constexpr std::size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return sizes[dtype];
}

template <class T>
void add_to(void* to, const void* from, std::size_t count, int redop) {
  auto* sum = static_cast<T*>(to);
  const auto* value = static_cast<const T*>(from);
  for (std::size_t i = 0; i < count; ++i) sum[i] = redop == ncclMax ? std::max(sum[i], value[i]) : sum[i] + value[i];
}

void combine(void* to, const void* from, const Form& form) {
  if (form.dtype == ncclFloat32) add_to<float>(to, from, form.count, form.redop);
  if (form.dtype == ncclFloat64) add_to<double>(to, from, form.count, form.redop);
  if (form.dtype == ncclInt32) add_to<int>(to, from, form.count, form.redop);
  if (form.dtype == ncclInt64) add_to<long>(to, from, form.count, form.redop);
}

std::size_t input_bytes(const Operation& o) {
  const std::size_t one = o.form.count * size_of(o.form.dtype);
  const auto all = static_cast<std::size_t>(o.comm->size);
  if (o.what == reduce_scatter || o.what == all_to_all) return one * all;
  if (o.what == scatter) return o.comm->rank == o.form.root ? one * all : 0;
  if (o.what == broadcast) return o.comm->rank == o.form.root ? one : 0;
  return one;
}

ncclResult_t post(Operation& o) {
  ncclComm& comm = *o.comm;
  Shared& shared = *comm.shared;
  o.sequence = ++comm.sequence;
  const ncclResult_t free = wait_until(shared, [&] {  // nobody reads what this slot held before
    for (int r = 0; r < comm.size; ++r) {
      if (shared.done[r].load() + 2 < o.sequence) return false;
    }
    return true;
  });
  if (free != ncclSuccess) return free;
  Slot& slot = shared.slots[comm.rank][o.sequence % 2];
  slot.form = o.form;
  if (const std::size_t bytes = input_bytes(o)) std::memcpy(slot.data, o.from, bytes);
  slot.posted.store(o.sequence);
  return ncclSuccess;
}

const char* data_of(const Operation& o, int rank) { return o.comm->shared->slots[rank][o.sequence % 2].data; }

void compute(const Operation& o) {
  const ncclComm& comm = *o.comm;
  const std::size_t one = o.form.count * size_of(o.form.dtype);
  auto* to = static_cast<char*>(o.to);
  const auto sum_of = [&](std::size_t offset) {
    std::memcpy(to, data_of(o, 0) + offset, one);
    for (int r = 1; r < comm.size; ++r) combine(to, data_of(o, r) + offset, o.form);
  };
  const auto mine = static_cast<std::size_t>(comm.rank) * one;
  const bool root = comm.rank == o.form.root;
  if (o.what == all_reduce || (o.what == reduce && root)) sum_of(0);
  if (o.what == reduce_scatter) sum_of(mine);
  if (o.what == broadcast) std::memcpy(to, data_of(o, o.form.root), one);
  if (o.what == scatter) std::memcpy(to, data_of(o, o.form.root) + mine, one);
  for (int r = 0; r < comm.size; ++r) {
    const auto place = static_cast<std::size_t>(r) * one;
    if (o.what == all_gather || o.what == split || (o.what == gather && root)) {
      std::memcpy(to + place, data_of(o, r), one);
    }
    if (o.what == all_to_all) std::memcpy(to + place, data_of(o, r) + mine, one);
  }
}

ncclResult_t finish(const Operation& o) {
  ncclComm& comm = *o.comm;
  Shared& shared = *comm.shared;
  bool fits = true;
  const ncclResult_t here = wait_until(shared, [&] {
    for (int r = 0; r < comm.size; ++r) {
      if (shared.slots[r][o.sequence % 2].posted.load() != o.sequence) return false;
    }
    return true;
  });
  if (here != ncclSuccess) return here;
  for (int r = 0; r < comm.size; ++r) fits = fits && shared.slots[r][o.sequence % 2].form == o.form;
  if (fits) compute(o);
  shared.done[comm.rank].store(o.sequence);
  return fits ? ncclSuccess : ncclInvalidUsage;
}

ncclResult_t deliver(const Operation& o) {
  Shared& shared = *o.comm->shared;
  Mail& mail = o.what == send ? shared.mail[o.comm->rank][o.form.root] : shared.mail[o.form.root][o.comm->rank];
  const std::size_t bytes = o.form.count * size_of(o.form.dtype);
  if (bytes > mail_max) return ncclInvalidArgument;
  if (o.what == send) {
    const ncclResult_t room = wait_until(shared, [&] { return mail.written.load() < mail.read.load() + boxes; });
    if (room != ncclSuccess) return room;
    Box& box = mail.box[mail.written.load() % boxes];
    box.bytes = bytes;
    std::memcpy(box.data, o.from, bytes);
    mail.written.fetch_add(1);
    return ncclSuccess;
  }
  const ncclResult_t there = wait_until(shared, [&] { return mail.read.load() < mail.written.load(); });
  if (there != ncclSuccess) return there;
  Box& box = mail.box[mail.read.load() % boxes];
  const bool fits = box.bytes == bytes;
  if (fits) std::memcpy(o.to, box.data, bytes);
  mail.read.fetch_add(1);
  return fits ? ncclSuccess : ncclInvalidUsage;
}

struct Joining {
  ncclComm* comm;
};
struct Group {
  int depth = 0;
  std::vector<Operation> operations;
  std::vector<Joining> joining;
};
thread_local Group group;

ncclResult_t note(ncclComm& comm, ncclResult_t result) {
  if (result != ncclSuccess) comm.error = result;
  return result;
}

// All sends, then the collectives of all communicators abreast, then all receives: so one thread may have many ranks.
ncclResult_t run(std::vector<Operation> operations) {
  ncclResult_t worst = ncclSuccess;
  const auto keep = [&](Operation& o, ncclResult_t result) {
    if (note(*o.comm, result) != ncclSuccess) worst = result;
  };
  std::map<ncclComm*, std::vector<Operation*>> collectives;
  std::size_t rounds = 0;
  for (Operation& o : operations) {
    if (o.what == send) keep(o, deliver(o));
    if (o.what == send || o.what == recv) continue;
    collectives[o.comm].push_back(&o);
    rounds = std::max(rounds, collectives[o.comm].size());
  }
  for (std::size_t round = 0; round < rounds; ++round) {
    for (auto& [comm, list] : collectives) {
      if (round < list.size()) keep(*list[round], post(*list[round]));
    }
    for (auto& [comm, list] : collectives) {
      if (round < list.size() && comm->error == ncclSuccess) keep(*list[round], finish(*list[round]));
    }
  }
  for (Operation& o : operations) {
    if (o.what == recv) keep(o, deliver(o));
  }
  return worst;
}

}  // namespace

ncclResult_t submit(const Operation& o) {
  if (!o.comm || o.form.root >= o.comm->size) return ncclInvalidArgument;
  if (o.comm->error != ncclSuccess) return o.comm->error;
  if (o.comm->size == 1 && o.what == all_reduce) {
    std::memmove(o.to, o.from, o.form.count * size_of(o.form.dtype));
    return ncclSuccess;
  }
  if (group.depth > 0) {
    group.operations.push_back(o);
    return ncclSuccess;
  }
  return run({o});
}

ncclResult_t run_now(const Operation& o) { return run({o}); }

static ncclResult_t await_all(const ncclComm& comm) {
  return wait_until(*comm.shared, [&] { return comm.shared->joined.load() >= comm.size; });
}

void group_start() { ++group.depth; }

ncclResult_t group_end() {
  if (group.depth == 0) return ncclInvalidUsage;
  if (--group.depth > 0) return ncclSuccess;
  std::vector<Operation> operations;
  std::vector<Joining> joining;
  operations.swap(group.operations);
  joining.swap(group.joining);
  for (const Joining& one : joining) {
    if (const ncclResult_t result = await_all(*one.comm); result != ncclSuccess) return result;
  }
  return run(std::move(operations));
}

ncclResult_t join(ncclComm** made, const std::string& path, int size, int rank) {
  if (size > ranks_max || rank >= size) return ncclInvalidArgument;
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ::ftruncate(file, sizeof(Shared)) != 0) return ncclSystemError;
  void* at = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (at == MAP_FAILED) return ncclSystemError;
  *made = new ncclComm{.path = path, .shared = static_cast<Shared*>(at), .rank = rank, .size = size};
  (*made)->shared->joined.fetch_add(1);
  if (group.depth > 0) {
    group.joining.push_back({*made});
    return ncclSuccess;
  }
  return await_all(**made);
}

ncclResult_t leave(ncclComm* comm) {
  ::munmap(comm->shared, sizeof(Shared));
  ::unlink(comm->path.c_str());  // all have joined, so nobody opens it any more
  delete comm;
  return ncclSuccess;
}

Form form(What what, std::size_t count, ncclDataType_t dtype, int redop, int root) {
  return {.op = what, .dtype = dtype, .redop = redop, .root = root, .count = count};
}

}  // namespace standin

// The engine of the tests' own libnccl: communicators that are mapped files, and operations between them.
//
// A communicator's path is its unique id. Every operation is complete when it returns, or when its group ends. Where
// NCCL would hang or compute nonsense, this says so: ranks whose calls do not fit get ncclInvalidUsage, a peer that
// does not come within STANDIN_DEADLINE_MS is ncclSystemError, one that aborts is ncclRemoteError.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "faults/interposer/preload/nccl_api.h"

namespace standin {

constexpr int ranks_max = 8;
constexpr std::size_t data_max = 32768;
constexpr std::size_t mail_max = 4096;
constexpr std::uint64_t boxes = 8;

enum What { all_reduce, broadcast, reduce, all_gather, reduce_scatter, all_to_all, gather, scatter, send, recv, split };

struct Form {  // must be the same on all ranks
  int op = 0, dtype = 0, redop = 0, root = 0;
  std::size_t count = 0;
  bool operator==(const Form&) const = default;
};
struct Slot {
  std::atomic<std::uint64_t> posted;
  Form form;
  char data[data_max];
};
struct Box {
  std::size_t bytes;
  char data[mail_max];
};
struct Mail {
  std::atomic<std::uint64_t> written, read;
  Box box[boxes];
};
struct Shared {
  std::atomic<int> joined;
  std::atomic<int> failed;
  std::atomic<std::uint64_t> done[ranks_max];
  Slot slots[ranks_max][2];
  Mail mail[ranks_max][ranks_max];
};

struct Operation {
  What what;
  const void* from;
  void* to;
  Form form;
  ncclComm* comm;
  std::uint64_t sequence = 0;
};

ncclResult_t submit(const Operation& operation);  // now, or when the thread's group ends
ncclResult_t run_now(const Operation& operation);
void group_start();
ncclResult_t group_end();
ncclResult_t join(ncclComm** made, const std::string& path, int size, int rank);
ncclResult_t leave(ncclComm* comm);
Form form(What what, std::size_t count, ncclDataType_t dtype, int redop, int root);

}  // namespace standin

struct ncclComm {
  std::string path;
  standin::Shared* shared = nullptr;
  int rank = 0, size = 0;
  std::uint64_t sequence = 0;
  int children = 0;
  ncclResult_t error = ncclSuccess;
};

// A program that knows nothing of Firedrill: it calls NCCL as a script tells it, and prints what comes out.
//   standin_client RANKS RANK ID WORD...          one rank
//   standin_client RANKS threads ID WORD...       all ranks, a thread each
// A word is an operation with its count and root or peer, `ar:8` or `bc:4:0`; the others are in `run_word`.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "faults/interposer/preload/cuda_api.h"
#include "faults/interposer/preload/nccl_api.h"

namespace {

struct Rank {
  int ranks = 1;
  int rank = 0;
  std::string id;
  std::vector<ncclComm_t> comms = {};
  std::size_t current = 0;
  std::vector<float> in = std::vector<float>(2048);
  std::vector<float> out = std::vector<float>(2048);
};

std::vector<std::string> parts_of(const std::string& word) {
  std::vector<std::string> parts(1);
  for (const char c : word) {
    if (c == ':') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

ncclResult_t make_comm(Rank& me, const std::string& suffix) {
  ncclUniqueId id{};
  std::snprintf(id.internal, sizeof id.internal, "%s%s", me.id.c_str(), suffix.c_str());
  me.comms.push_back(nullptr);
  me.current = me.comms.size() - 1;
  if (suffix.empty()) return ncclCommInitRank(&me.comms.back(), me.ranks, id, me.rank);
  return ncclCommInitRankConfig(&me.comms.back(), me.ranks, id, me.rank, nullptr);
}

const cudaStream_t stream = reinterpret_cast<cudaStream_t>(0x51);
const cudaStream_t other_stream = reinterpret_cast<cudaStream_t>(0x52);

bool run_operation(Rank& me, const std::string& op, std::size_t n, int root, ncclResult_t& result) {
  const ncclComm_t comm = me.comms[me.current];
  float* in = me.in.data();
  float* out = me.out.data();
  const ncclDataType_t type = ncclFloat32;
  if (op == "ar")
    result = ncclAllReduce(in, out, n, type, ncclSum, comm, stream);
  else if (op == "max")
    result = ncclAllReduce(in, out, n, type, ncclMax, comm, stream);
  else if (op == "bc")
    result = ncclBroadcast(in, out, n, type, root, comm, stream);
  else if (op == "bcast")
    result = ncclBcast(in, n, type, root, comm, stream);
  else if (op == "rd")
    result = ncclReduce(in, out, n, type, ncclSum, root, comm, stream);
  else if (op == "ag")
    result = ncclAllGather(in, out, n, type, comm, stream);
  else if (op == "rs")
    result = ncclReduceScatter(in, out, n, type, ncclSum, comm, stream);
  else if (op == "a2a")
    result = ncclAlltoAll(in, out, n, type, comm, stream);
  else if (op == "gather")
    result = ncclGather(in, out, n, type, root, comm, stream);
  else if (op == "scatter")
    result = ncclScatter(in, out, n, type, root, comm, stream);
  else if (op == "send")
    result = ncclSend(in, n, type, root, comm, stream);
  else if (op == "recv")
    result = ncclRecv(out, n, type, root, comm, stream);
  else
    return false;
  return true;
}

// A child of the program, as of a data loader, that uses NCCL by itself.
ncclResult_t run_in_fork(Rank& me) {
  const pid_t child = ::fork();
  if (child == 0) {
    me.ranks = 1;
    me.rank = 0;
    ncclResult_t result = make_comm(me, ".child");
    if (result == ncclSuccess) {
      result = ncclAllReduce(me.in.data(), me.out.data(), 4, ncclFloat32, ncclSum, me.comms.back(), nullptr);
    }
    std::exit(static_cast<int>(result));
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && status == 0 ? ncclSuccess : ncclSystemError;
}

bool run_life(Rank& me, const std::vector<std::string>& word, ncclResult_t& result) {
  const std::string& op = word[0];
  const int number = word.size() > 1 ? std::atoi(word[1].c_str()) : 0;
  if (op == "comm")
    result = make_comm(me, word.size() > 1 ? word[1] : "");
  else if (op == "fork")
    result = run_in_fork(me);
  else if (op == "away")
    result = ::chdir("/") == 0 ? ncclSuccess : ncclSystemError;
  else if (op == "use")
    me.current = static_cast<std::size_t>(number);
  else if (op == "gs")
    result = ncclGroupStart();
  else if (op == "ge")
    result = ncclGroupEnd();
  else if (op == "split") {
    me.comms.push_back(nullptr);
    result = ncclCommSplit(me.comms[me.current], me.rank % number, me.rank, &me.comms.back(), nullptr);
    me.current = me.comms.size() - 1;
  } else if (op == "shrink") {
    me.comms.push_back(nullptr);
    int excluded = number;
    result = ncclCommShrink(me.comms[me.current], &excluded, 1, &me.comms.back(), nullptr, 0);
    me.current = me.comms.size() - 1;
  } else if (op == "finalize")
    result = ncclCommFinalize(me.comms[me.current]);
  else if (op == "destroy")
    result = ncclCommDestroy(me.comms[me.current]);
  else if (op == "abort")
    result = ncclCommAbort(me.comms[me.current]);
  else if (op == "error") {
    ncclCommGetAsyncError(me.comms[me.current], &result);
  } else
    return false;
  return true;
}

bool run_cuda(const std::string& op) {
  if (op == "sync")
    cudaStreamSynchronize(stream);
  else if (op == "othersync")
    cudaStreamSynchronize(other_stream);
  else if (op == "devsync")
    cudaDeviceSynchronize();
  else if (op == "evsync")
    cudaEventSynchronize(nullptr);
  else if (op == "record")
    cudaEventRecord(nullptr, stream);
  else if (op == "launch")
    cudaLaunchKernel(nullptr, dim3{1, 1, 1}, dim3{1, 1, 1}, nullptr, 0, stream);
  else if (op == "otherlaunch")
    cudaLaunchKernel(nullptr, dim3{1, 1, 1}, dim3{1, 1, 1}, nullptr, 0, other_stream);
  else
    return false;
  return true;
}

// `only:R:WORD...` runs the rest of the word on rank R alone, `not:R:WORD...` on all others.
void run_word(Rank& me, const std::string& text) {
  std::vector<std::string> word = parts_of(text);
  if (word.size() > 2 && (word[0] == "only" || word[0] == "not")) {
    if ((std::atoi(word[1].c_str()) == me.rank) != (word[0] == "only")) return;
    word.erase(word.begin(), word.begin() + 2);
  }
  for (std::size_t i = 0; i < me.in.size(); ++i) me.in[i] = static_cast<float>(me.rank + 1);
  me.out.assign(me.out.size(), -1);
  ncclResult_t result = ncclSuccess;
  const std::size_t n = word.size() > 1 ? std::strtoull(word[1].c_str(), nullptr, 10) : 0;
  const int root = word.size() > 2 ? std::atoi(word[2].c_str()) : 0;
  const bool operation = !me.comms.empty() && run_operation(me, word[0], n, root, result);
  if (!operation && !run_life(me, word, result) && !run_cuda(word[0])) {
    if (word[0] != "pause") std::printf("r%d unknown word %s\n", me.rank, text.c_str());
    if (word[0] == "pause") ::pause();
  }
  const float* values = word[0] == "bcast" ? me.in.data() : me.out.data();
  std::printf("r%d %s = %d %g %g\n", me.rank, text.c_str(), static_cast<int>(result), static_cast<double>(values[0]),
              static_cast<double>(n > 0 ? values[n - 1] : 0));
  std::fflush(stdout);
}

void run_script(Rank me, int argc, char** argv) {
  me.comms.reserve(64);  // in a group NCCL keeps the place of the handle until the group ends
  for (int i = 4; i < argc; ++i) run_word(me, argv[i]);
}

// Words for all devices of the process in one thread: `ar:8` for each in a group.
void run_all(int ranks, int argc, char** argv) {
  std::vector<ncclComm_t> comms(static_cast<std::size_t>(ranks));
  ncclCommInitAll(comms.data(), ranks, nullptr);
  for (int i = 4; i < argc; ++i) {
    std::vector<Rank> devices;
    for (int r = 0; r < ranks; ++r) devices.push_back({.ranks = ranks, .rank = r, .id = "", .comms = comms});
    ncclGroupStart();
    for (int r = 0; r < ranks; ++r) {
      devices[static_cast<std::size_t>(r)].current = static_cast<std::size_t>(r);
      run_word(devices[static_cast<std::size_t>(r)], argv[i]);
    }
    const ncclResult_t result = ncclGroupEnd();
    std::printf("all %s = %d %g\n", argv[i], static_cast<int>(result), static_cast<double>(devices[0].out[0]));
  }
  for (ncclComm_t comm : comms) ncclCommDestroy(comm);
}

}  // namespace

extern "C" int run_client(int argc, char** argv) {
  if (argc < 4) return 2;
  const int ranks = std::atoi(argv[1]);
  const std::string who = argv[2];
  if (who == "all") {
    run_all(ranks, argc, argv);
  } else if (who == "threads") {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back(run_script, Rank{.ranks = ranks, .rank = rank, .id = argv[3]}, argc, argv);
    }
    for (std::thread& thread : threads) thread.join();
  } else {
    run_script({.ranks = ranks, .rank = std::atoi(who.c_str()), .id = argv[3]}, argc, argv);
  }
  return 0;
}

#if !defined(FIREDRILL_PLUGIN)
int main(int argc, char** argv) { return run_client(argc, argv); }
#endif

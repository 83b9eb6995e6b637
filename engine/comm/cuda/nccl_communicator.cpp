#include "engine/comm/cuda/nccl_communicator.h"

#include <array>
#include <cstring>
#include <string>
#include <utility>

namespace firedrill {
namespace {

constexpr Duration between_looks = std::chrono::microseconds(5);

std::size_t total_of(const auto& spans) {
  std::size_t total = 0;
  for (const auto& span : spans) total += span.size();
  return total;
}

std::string to_text(const ncclUniqueId& id) {
  std::string text;
  for (const char c : id.internal) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

Result<ncclUniqueId> id_from(std::string_view text) {
  ncclUniqueId id{};
  if (text.size() != 2 * sizeof id.internal) {
    return Error{.code = Code::corrupted, .message = fmt::format("an NCCL id of {} characters", text.size())};
  }
  const auto nibble = [&text](std::size_t i) { return text[i] <= '9' ? text[i] - '0' : text[i] - 'a' + 10; };
  for (std::size_t i = 0; i < sizeof id.internal; ++i) {
    id.internal[i] = static_cast<char>(nibble(2 * i) * 16 + nibble(2 * i + 1));
  }
  return id;
}

ncclConfig_t without_blocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

ncclDataType_t type_of(DType dtype) {
  FD_CHECK(dtype == DType::f32 || dtype == DType::i64, "{} is not reduced", to_string(dtype));
  return dtype == DType::f32 ? ncclFloat32 : ncclInt64;
}

ncclRedOp_t reduction_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return ncclSum;
    case ReduceOp::max: return ncclMax;
    case ReduceOp::min: return ncclMin;
  }
  fail_check(__FILE__, __LINE__, "op", "no such reduction");
}

}  // namespace

Result<std::unique_ptr<Communicator>> NcclCommunicator::of_world(Store& store, std::string_view key, Clock& clock,
                                                                 const NcclPlace& place, Time deadline) {
  std::unique_ptr<NcclCommunicator> made(new NcclCommunicator(clock, place.device));
  FD_TRY_VOID(made->prepare());
  if (place.rank == 0) {
    ncclUniqueId id{};
    FD_NCCL(ncclGetUniqueId(&id));
    FD_TRY_VOID(store.set(key, to_text(id)));
  }
  FD_TRY(const std::string text, store.get(key, deadline));
  FD_TRY(const ncclUniqueId id, id_from(text));
  ncclConfig_t config = without_blocking();
  FD_NCCL(ncclCommInitRankConfig(&made->comm_, place.world_size, id, place.rank, &config));
  FD_TRY_VOID(made->wait_for_nccl(deadline));
  return std::unique_ptr<Communicator>(std::move(made));
}

NcclCommunicator::~NcclCommunicator() {
  if (comm_) ncclCommAbort(comm_);  // what was waited for is done; what was not is of no use any more
  for (const Pending& sent : pending_) cudaEventDestroy(sent.done);
  if (stream_) cudaStreamDestroy(stream_);
}

Status NcclCommunicator::prepare() {
  FD_CUDA(cudaSetDevice(device_));
  FD_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  return {};
}

Status NcclCommunicator::usable() const {
  if (comm_ && !abort_asked_) return {};
  return Error{.code = Code::aborted, .message = "the communicator was aborted"};
}

Status NcclCommunicator::give_up(Error error) {
  if (comm_) ncclCommAbort(std::exchange(comm_, nullptr));
  return error;
}

Status NcclCommunicator::one_more_look(Time deadline) {
  if (abort_asked_) return Error{.code = Code::aborted, .message = "the communicator was aborted"};
  if (clock_.now() > deadline) return Error{.code = Code::timeout, .message = "a peer did not come in time"};
  return clock_.sleep_until(clock_.now() + between_looks);
}

Status NcclCommunicator::wait_for_nccl(Time deadline) {
  while (true) {
    ncclResult_t state = ncclSuccess;
    Status asked = check_nccl(ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError");
    if (asked) asked = check_nccl(state, "ncclCommGetAsyncError");
    if (asked && state == ncclSuccess) return {};
    if (asked) asked = one_more_look(deadline);
    if (!asked) return give_up(std::move(asked).error());
  }
}

Status NcclCommunicator::wait_for_stream(Time deadline) {
  while (true) {
    const cudaError_t done = cudaStreamQuery(stream_);
    if (done == cudaSuccess) return {};
    Status asked = done == cudaErrorNotReady ? Status() : check_cuda(done, "cudaStreamQuery");
    ncclResult_t state = ncclSuccess;
    if (asked) asked = check_nccl(ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError");
    if (asked) asked = check_nccl(state, "ncclCommGetAsyncError");
    if (asked) asked = one_more_look(deadline);
    if (!asked) return give_up(std::move(asked).error());
  }
}

Status NcclCommunicator::move(std::span<const std::span<const std::byte>> outgoing,
                              std::span<const std::span<std::byte>> incoming) {
  FD_NCCL(ncclGroupStart());
  std::byte* from = out_.data();
  std::byte* to = in_.data();
  Status issued;
  for (std::size_t i = 0; i < outgoing.size(); ++i) {
    const int member = static_cast<int>(i);
    if (issued && !outgoing[i].empty()) {
      issued = check_nccl(ncclSend(from, outgoing[i].size(), ncclUint8, member, comm_, stream_), "ncclSend");
    }
    if (issued && !incoming[i].empty()) {
      issued = check_nccl(ncclRecv(to, incoming[i].size(), ncclUint8, member, comm_, stream_), "ncclRecv");
    }
    from += outgoing[i].size();
    to += incoming[i].size();
  }
  FD_NCCL(ncclGroupEnd());
  return issued;
}

Status NcclCommunicator::exchange(std::span<const std::span<const std::byte>> outgoing,
                                  std::span<const std::span<std::byte>> incoming, Time deadline) {
  FD_TRY_VOID(usable());
  FD_CUDA(cudaSetDevice(device_));
  FD_TRY_VOID(out_.reserve(total_of(outgoing)));
  FD_TRY_VOID(in_.reserve(total_of(incoming)));
  std::byte* from = out_.data();
  for (const std::span<const std::byte> bytes : outgoing) {
    if (!bytes.empty()) {
      FD_CUDA(cudaMemcpyAsync(from, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, stream_));
    }
    from += bytes.size();
  }
  FD_TRY_VOID(move(outgoing, incoming));
  FD_TRY_VOID(wait_for_nccl(deadline));
  FD_TRY_VOID(wait_for_stream(deadline));
  const std::byte* to = in_.data();
  for (const std::span<std::byte> bytes : incoming) {
    if (!bytes.empty()) FD_CUDA(cudaMemcpy(bytes.data(), to, bytes.size(), cudaMemcpyDeviceToHost));
    to += bytes.size();
  }
  return {};
}

Status NcclCommunicator::let_go_of_sent() {
  while (!pending_.empty() && cudaEventQuery(pending_.front().done) == cudaSuccess) {
    FD_CUDA(cudaEventDestroy(pending_.front().done));
    pending_.pop_front();
  }
  return {};
}

Status NcclCommunicator::send(int member, std::span<const std::byte> bytes, Time deadline) {
  FD_TRY_VOID(usable());
  FD_CUDA(cudaSetDevice(device_));
  FD_TRY_VOID(let_go_of_sent());
  Pending sent;
  FD_TRY_VOID(sent.buffer.reserve(bytes.size()));
  FD_CUDA(cudaMemcpyAsync(sent.buffer.data(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice, stream_));
  FD_NCCL(ncclSend(sent.buffer.data(), bytes.size(), ncclUint8, member, comm_, stream_));
  FD_TRY_VOID(wait_for_nccl(deadline));
  FD_CUDA(cudaEventCreateWithFlags(&sent.done, cudaEventDisableTiming));
  FD_CUDA(cudaEventRecord(sent.done, stream_));
  pending_.push_back(std::move(sent));
  return {};
}

Status NcclCommunicator::receive(int member, std::span<std::byte> bytes, Time deadline) {
  FD_TRY_VOID(usable());
  FD_CUDA(cudaSetDevice(device_));
  FD_TRY_VOID(in_.reserve(bytes.size()));
  FD_NCCL(ncclRecv(in_.data(), bytes.size(), ncclUint8, member, comm_, stream_));
  FD_TRY_VOID(wait_for_nccl(deadline));
  FD_TRY_VOID(wait_for_stream(deadline));
  FD_CUDA(cudaMemcpy(bytes.data(), in_.data(), bytes.size(), cudaMemcpyDeviceToHost));
  return {};
}

Status NcclCommunicator::all_reduce(DType dtype, std::span<const std::byte> in, std::span<std::byte> out, ReduceOp op,
                                    Time deadline) {
  FD_TRY_VOID(usable());
  FD_CUDA(cudaSetDevice(device_));
  FD_TRY_VOID(out_.reserve(in.size()));
  FD_CUDA(cudaMemcpyAsync(out_.data(), in.data(), in.size(), cudaMemcpyHostToDevice, stream_));
  FD_NCCL(ncclAllReduce(out_.data(), out_.data(), in.size() / size_of(dtype), type_of(dtype), reduction_of(op), comm_,
                        stream_));
  FD_TRY_VOID(wait_for_nccl(deadline));
  FD_TRY_VOID(wait_for_stream(deadline));
  FD_CUDA(cudaMemcpy(out.data(), out_.data(), out.size(), cudaMemcpyDeviceToHost));
  return {};
}

Result<std::unique_ptr<Communicator>> NcclCommunicator::split(int color, int key, Time deadline) {
  FD_TRY_VOID(usable());
  std::unique_ptr<NcclCommunicator> made(new NcclCommunicator(clock_, device_));
  FD_TRY_VOID(made->prepare());
  ncclConfig_t config = without_blocking();
  FD_NCCL(ncclCommSplit(comm_, color, key, &made->comm_, &config));
  FD_TRY_VOID(wait_for_nccl(deadline));
  FD_CHECK(made->comm_, "a split with colour {} gave no communicator", color);
  FD_TRY_VOID(made->wait_for_nccl(deadline));
  return std::unique_ptr<Communicator>(std::move(made));
}

}  // namespace firedrill

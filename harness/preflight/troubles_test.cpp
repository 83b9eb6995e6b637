#include "harness/preflight/troubles_test.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "engine/os/descriptor.h"
#include "harness/preflight/delaying_proxy_test.h"

namespace firedrill::preflight {
namespace {

using std::chrono::milliseconds;
using Name = std::string;

class TroubledFile final : public ForwardingFile {
 public:
  TroubledFile(std::unique_ptr<File> inner, Name trouble, bool shared)
      : ForwardingFile(std::move(inner)), trouble_(std::move(trouble)), shared_(shared) {}
  Status sync() override {
    if (trouble_ == "failing_sync") return Error{.code = Code::io_error, .message = "sync of a file failed"};
    if (trouble_ == "slow_sync") std::this_thread::sleep_for(milliseconds(500));
    if (trouble_ == "hung_sync") ::pause();
    return inner_->sync();
  }
  Result<Value> read(std::int64_t offset, std::int64_t size) override {
    FD_TRY(Value bytes, inner_->read(offset, size));
    if (trouble_ != "wrong_bytes" || !shared_ || bytes.size() == 0) return bytes;
    MutableValue copy(Value::copy_of(bytes.text()));
    copy.bytes().back() ^= std::byte{1};
    return std::move(copy).freeze();
  }

 private:
  Name trouble_;
  bool shared_;  // what all ranks write and read back
};

class TroubledFiles final : public ForwardingFileSystem {
 public:
  TroubledFiles(FileSystem& inner, Name trouble, int rank)
      : ForwardingFileSystem(inner), trouble_(std::move(trouble)), rank_(rank) {}

  Result<std::unique_ptr<File>> create(std::string_view path) override {
    Result<std::unique_ptr<File>> file = inner_.create(path);
    // A name that is there is given to everybody.
    if (trouble_ == "no_exclusive" && file.failed_with(Code::already_exists)) file = inner_.open(path);
    return around(std::move(file), path);
  }
  Result<std::unique_ptr<File>> open(std::string_view path) override { return around(inner_.open(path), path); }
  Status rename(std::string_view from, std::string_view to) override {
    if (trouble_ == "rename_in_two") {
      FD_TRY_VOID(inner_.remove(to));
      std::this_thread::sleep_for(milliseconds(2));
    }
    return inner_.rename(from, to);
  }
  Result<FileInfo> stat(std::string_view path) override {
    if (trouble_ == "late_stat" && rank_ > 0 && path.find("seen-") != std::string_view::npos) {
      return Error{.code = Code::not_found, .message = "not yet"};
    }
    return inner_.stat(path);
  }

 private:
  Result<std::unique_ptr<File>> around(Result<std::unique_ptr<File>> file, std::string_view path) const {
    if (!file) return file;
    const bool shared = path.find("rank-") != std::string_view::npos;
    return Result<std::unique_ptr<File>>(std::make_unique<TroubledFile>(std::move(*file), trouble_, shared));
  }

  Name trouble_;
  int rank_;
};

// Of rank 1: damages large messages to rank 0; of ranks 0 and 3: what they send each other is late, or slow by the
// byte, or goes through a proxy that delays it.
class TroubledTransport final : public ForwardingTransport {
 public:
  TroubledTransport(Transport& inner, Name trouble, int rank)
      : ForwardingTransport(inner), trouble_(std::move(trouble)), rank_(rank) {}
  Status connect(const std::vector<std::string>& addresses, Time deadline) override {
    if (trouble_ != "delaying_proxy" || rank_ != 3) return inner_.connect(addresses, deadline);
    // Higher ranks call lower ones.
    proxy_ = std::make_unique<DelayingProxy>(addresses.front(), milliseconds(5));
    std::vector<std::string> changed = addresses;
    changed.front() = proxy_->address();
    return inner_.connect(changed, deadline);
  }
  Status send(int peer, Tag tag, const Value& value, Time deadline) override {
    const bool between = (rank_ == 0 && peer == 3) || (rank_ == 3 && peer == 0);
    const bool plain = value && !value.is_pack();
    if (trouble_ == "slow_link" && between) std::this_thread::sleep_for(milliseconds(3));
    if (trouble_ == "narrow_link" && between && plain) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(value.size() * 25));  // 40 MB/s
    }
    if (trouble_ == "damaging_link" && rank_ == 1 && peer == 0 && plain && value.size() > 1'000) {
      MutableValue copy(Value::copy_of(value.dtype(), value.shape(), value.bytes()));
      copy.bytes()[17] ^= std::byte{64};
      return inner_.send(peer, tag, std::move(copy).freeze(), deadline);
    }
    return inner_.send(peer, tag, value, deadline);
  }

 private:
  Name trouble_;
  int rank_;
  std::unique_ptr<DelayingProxy> proxy_;
};

void hold_back(const Name& trouble, int rank) {
  if (trouble == "own_network" && rank == 3) {
    const Descriptor network(::open(("/run/netns/" + own_network).c_str(), O_RDONLY | O_CLOEXEC));
    if (::setns(network.number(), CLONE_NEWNET) != 0) ::_exit(4);
  }
  if (rank != 1) return;
  if (trouble == "few_files") {
    const rlimit limit{.rlim_cur = 40, .rlim_max = 40};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (trouble == "quarter") std::ofstream(quarter_group + "/cgroup.procs") << ::getpid();
  if (trouble == "dies") ::_exit(3);
  if (trouble == "busy") {
    // Nothing else that could be seen from outside happens meanwhile.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
    while (std::chrono::steady_clock::now() < end) {
    }
  }
}

}  // namespace

ProbeSeams troubled_seams() {
  const char* const name = std::getenv(trouble_variable);
  if (name == nullptr || *name == '\0') return {};
  const Name trouble = name;
  return {
      .files = [trouble](FileSystem& real, int rank) { return std::make_unique<TroubledFiles>(real, trouble, rank); },
      .transport = [trouble](Transport& real,
                             int rank) { return std::make_unique<TroubledTransport>(real, trouble, rank); },
      .address = [trouble](int rank) -> std::string {
        if (trouble != "own_network") return "127.0.0.1";
        return rank == 3 ? address_inside : address_outside;
      },
      .start = [trouble](int rank) { hold_back(trouble, rank); }};
}

}  // namespace firedrill::preflight

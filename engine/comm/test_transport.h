// A transport between threads of one program, for the tests of this folder: mailboxes under one mutex.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "engine/seam/transport.h"

namespace firedrill {

class TestTransport final : public Transport {
 public:
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::tuple<int, int, Tag>, std::deque<Value>> boxes;  // (from, to, tag)
    std::optional<Error> aborted;
    std::size_t messages = 0;
  };
  TestTransport(Shared& shared, int rank, int world_size) : shared_(shared), rank_(rank), world_size_(world_size) {}

  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }
  std::string address() const override { return {}; }
  Status connect(const std::vector<std::string>&, Time) override { return {}; }
  Status send(int peer, Tag tag, const Value& value, Time) override {
    const std::lock_guard lock(shared_.mutex);
    if (shared_.aborted) return *shared_.aborted;
    shared_.boxes[{rank_, peer, tag}].push_back(value);
    ++shared_.messages;
    shared_.changed.notify_all();
    return {};
  }
  Result<Value> recv(int peer, Tag tag, Time) override {
    std::unique_lock lock(shared_.mutex);
    auto& box = shared_.boxes[{peer, rank_, tag}];
    shared_.changed.wait(lock, [&] { return shared_.aborted || !box.empty(); });
    if (box.empty()) return *shared_.aborted;
    Value value = std::move(box.front());
    box.pop_front();
    return value;
  }
  void abort(const Error& reason) override {
    const std::lock_guard lock(shared_.mutex);
    shared_.aborted = Error{.code = Code::aborted, .message = reason.message};
    shared_.changed.notify_all();
  }

 private:
  Shared& shared_;
  int rank_;
  int world_size_;
};

inline void run_threads(int ranks, const std::function<void(int rank)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(body, rank);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace firedrill

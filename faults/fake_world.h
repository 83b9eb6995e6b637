// A small world. For tests of this folder: it keeps a journal as text, remembers who died, and has seams that count
// the calls that reach them.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/seam/collectives.h"
#include "engine/seam/compute.h"
#include "engine/seam/store.h"
#include "engine/seam/transport.h"
#include "engine/sim/disk.h"
#include "faults/injector.h"

namespace firedrill {

class FakeWorld final : public Effects {
 public:
  Status journal(const Firing& firing) override {
    if (fail_journal) return Error{.code = Code::fenced, .message = "nobody keeps a journal any more"};
    journaled.push_back(fmt::format("{} at {}/{}/{}", firing.fault, firing.position.attempt, firing.position.step,
                                    to_string(firing.position.phase)));
    // Whatever the fault does, it is on record before.
    died_before_journal = died_before_journal || dead;
    return {};
  }
  void kill_rank() override { dead = true; }
  bool rank_dead() const override { return dead; }
  void hang_rank() override { did.emplace_back("hang"); }
  void stall_task() override { did.emplace_back("stall"); }
  void preempt_rank() override { did.emplace_back("preempt"); }
  void exit_rank(int code) override { did.push_back(fmt::format("exit {}", code)); }
  void kill_node(bool lose_unsynced_data, bool lose_unsynced_names) override {
    dead = true;
    node_deaths.push_back(
        fmt::format("data {} names {}", lose_unsynced_data ? "lost" : "kept", lose_unsynced_names ? "lost" : "kept"));
  }

  FileSystem& storage() override { return *files; }
  Status overwrite(std::string_view path, std::int64_t offset, const Value& bytes) override {
    return disk.overwrite(path, offset, bytes);
  }
  void forget_unsynced(FileOp sync, std::string_view path) override { disk.forget_unsynced(sync, path, 0); }
  void skew_clock(Duration by) override { skew += by; }
  std::vector<int> others_in(std::string_view) override { return {1, 2}; }
  std::vector<int> node_ranks() override { return {0}; }
  void trouble_link(int from, int to, const LinkTrouble& trouble) override {
    links.push_back(fmt::format("{}>{}{}", from, to, trouble.cut ? " cut" : ""));
  }
  void send_late(int peer, Tag tag, const Value&) override { late.push_back(fmt::format("{} tag {}", peer, tag)); }
  Time now() override { return time; }
  Status sleep_until(Time until) override { return time = until, Status(); }

  sim::Disk disk;  // of node 0
  std::unique_ptr<FileSystem> files = disk.files({});
  Duration skew{0};
  Time time{0};
  std::vector<std::string> journaled;
  std::vector<std::string> node_deaths;
  std::vector<std::string> links;  // in trouble
  std::vector<std::string> late;   // messages for the next attempt
  std::vector<std::string> did;    // to ranks, other than to kill them
  bool dead = false;
  bool died_before_journal = false;
  bool fail_journal = false;
};

class CountingTransport final : public Transport {
 public:
  int rank() const override { return 0; }
  int world_size() const override { return 2; }
  std::string address() const override { return "here"; }
  Status connect(const std::vector<std::string>&, Time) override { return {}; }
  Status send(int, Tag, const Value&, Time) override { return ++sends, Status(); }
  Result<Value> recv(int, Tag, Time) override {
    ++recvs;
    if (answer.code != Code::internal) return answer;
    return Value::copy_of("message");
  }
  void abort(const Error&) override {}

  int sends = 0;
  int recvs = 0;
  Error answer;  // of recv, if its code is set
};

class CountingStore final : public Store {
 public:
  Status set(std::string_view, std::string_view) override { return ++calls, Status(); }
  Result<std::string> get(std::string_view, Time) override { return ++calls, std::string("value"); }
  Result<std::int64_t> add(std::string_view, std::int64_t) override { return ++calls, std::int64_t{1}; }

  int calls = 0;
};

class CountingCompute final : public Compute {
 public:
  Result<Value> run(const Kernel&, std::span<const std::byte>, std::span<Value>) override {
    return ++calls, Value::copy_of("result");
  }

  int calls = 0;
};

class CountingCollectives final : public Collectives {
 public:
  Result<Value> all_reduce(const Group&, std::span<const Value>, ReduceOp, const Call&) override { return value(); }
  Result<Value> reduce_scatter(const Group&, std::span<const Value>, ReduceOp, const Call&) override { return value(); }
  Result<Value> all_gather(const Group&, const Value&, const Call&) override { return value(); }
  Result<Value> broadcast(const Group&, const Value&, int, const Call&) override { return value(); }
  Status barrier(const Group&, const Call&) override { return ++calls, Status(); }
  Result<Value> all_to_all(const Group&, std::span<const Value>, const Call&) override { return value(); }
  Status send(const Group&, int, const Value&, const Call&) override { return ++calls, Status(); }
  Result<Value> recv(const Group&, int, const Call&) override { return value(); }
  void abort(const Error&) override {}

  int calls = 0;

 private:
  Value value() { return ++calls, Value::copy_of("result"); }
};

}  // namespace firedrill

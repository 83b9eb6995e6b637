// Ranks as threads over a TestDisk, for the tests of this folder: each has a Protocol of its own; events are kept.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/error.h"
#include "engine/ckpt/protocol.h"
#include "engine/ckpt/test_disk.h"
#include "engine/comm/collectives_over_transport.h"
#include "engine/comm/test_transport.h"

namespace firedrill {

class TestClock final : public Clock {
 public:
  Time now() const override { return Time(now_.load()); }
  Status sleep_until(Time time) override {
    std::int64_t before = now_.load();
    while (before < time.count() && !now_.compare_exchange_weak(before, time.count())) {
    }
    return {};
  }

 private:
  std::atomic<std::int64_t> now_{0};
};

class TestObserver final : public Observer {
 public:
  void event(const Event& event) override {
    const std::lock_guard lock(mutex_);
    events_.push_back(event);
  }
  NameId intern(std::string_view text) override {
    const std::lock_guard lock(mutex_);
    names_.emplace_back(text);
    return static_cast<NameId>(names_.size());
  }
  bool knows_state(const Digest&) override { return true; }
  void describe_state(const Digest&, std::span<const NamedDigest>) override {}

  std::vector<Event> all(EventKind kind) const {
    const std::lock_guard lock(mutex_);
    std::vector<Event> found;
    for (const Event& event : events_) {
      if (event.kind == kind) found.push_back(event);
    }
    return found;
  }
  // Where the first one of a kind stands among all events; -1: there is none.
  std::ptrdiff_t place_of(EventKind kind) const {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < events_.size(); ++i) {
      if (events_[i].kind == kind) return static_cast<std::ptrdiff_t>(i);
    }
    return -1;
  }
  std::string text(NameId id) const { return id == 0 ? "" : names_[id - 1]; }

 private:
  mutable std::mutex mutex_;
  std::vector<Event> events_;
  std::deque<std::string> names_;
};

class NoStore final : public Store {
 public:
  Status set(std::string_view, std::string_view) override { return {}; }
  Result<std::string> get(std::string_view, Time) override { return std::string(); }
  Result<std::int64_t> add(std::string_view, std::int64_t) override { return 0; }
};

class NoHost final : public Host {
 public:
  int node() const override { return 0; }
  Status spawn(std::string_view, std::function<void()>) override { return {}; }
  Status wait(EventId, Time) override { return {}; }
  void notify(EventId) override {}
  void kill_self() override {}
  bool dead() const override { return false; }
};

inline Job test_job() {
  Job job;
  job.name = "test";
  job.lanes.dp = 4;
  job.steps = 20;
  job.checkpoint.keep_validated = 2;
  job.cluster.ranks_per_node = 2;
  return job;
}

// What the ranks of a test job save: replicated groups with padding between tensors, and one group per dp lane.
// golden/format-1 holds step 2 of it: it must stay as it is.
inline StateView test_state(const Job& job, int ranks, int rank, std::int64_t step) {
  const auto numbers = [step](std::int64_t count, float first) {
    std::vector<float> values(static_cast<std::size_t>(count), 0.0F);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = first + static_cast<float>(i) + 1000.0F * static_cast<float>(step);
    for (std::size_t i = 35; i < 64 && i < values.size(); ++i) values[i] = 0.0F;  // padding behind the first tensor
    return Value::copy_of(std::span<const float>(values));
  };
  StateView state;
  const auto add_pair = [&](const std::string& name, ShardKind shard, float first) {
    state.push_back({.name = name,
                     .shard = shard,
                     .count = 64 + 300,
                     .tensors = {{.name = name + ".weight", .shape = {5, 7}, .offset = 0},
                                 {.name = name + ".bias", .shape = {300}, .offset = 64}},
                     .value = numbers(64 + 300, first)});
  };
  add_pair("model/layer", ShardKind::model, 0.25F);
  add_pair("optimizer/layer", ShardKind::optimizer, 0.5F);
  const std::int64_t progress[] = {step, 7 * step};
  state.push_back({.name = "extra/progress",
                   .shard = ShardKind::extra,
                   .dtype = DType::i64,
                   .count = 2,
                   .tensors = {{.name = "progress.step", .shape = {}, .offset = 0},
                               {.name = "progress.cursor", .shape = {}, .offset = 1}},
                   .value = Value::copy_of(std::span<const std::int64_t>(progress))});
  const int each = job.lanes.dp / ranks;
  for (int lane = rank * each; lane < (rank + 1) * each; ++lane) {
    const std::int64_t counter[] = {100 * step + lane};
    const std::string name = "random.lane." + std::to_string(lane);
    state.push_back({.name = "extra/" + name,
                     .shard = ShardKind::extra,
                     .dtype = DType::i64,
                     .count = 1,
                     .replicated = false,
                     .tensors = {{.name = name, .shape = {}, .offset = 0}},
                     .value = Value::copy_of(std::span<const std::int64_t>(counter))});
  }
  return state;
}

inline StateView blank(StateView state) {
  for (StateGroup& group : state) group.value = Value();
  return state;
}

inline bool same_state(const StateView& a, const StateView& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const StateGroup& x, const StateGroup& y) {
    return x.name == y.name && x.value && y.value && x.value.same_as(y.value);
  });
}

// One attempt of `ranks` ranks on a disk. `body` runs on a thread per rank; a rank that dies aborts all;
// other errors are everybody's.
struct TestAttempt {
  using Body = std::function<Status(const CheckpointContext&, Protocol&)>;
  using MakeProtocol = std::function<std::unique_ptr<Protocol>()>;

  explicit TestAttempt(TestDisk& on, int attempt_number = 1, int rank_count = 4)
      : disk(on), attempt(attempt_number), ranks(rank_count), layout{.dp = rank_count} {
    job.checkpoint.catalog = disk.catalog;
  }

  TestDisk& disk;
  int attempt;
  int ranks;
  Layout layout;
  Job job = test_job();
  std::string run_id = "run-1";
  Digest corpus = digest_of(std::string_view("corpus"));
  std::int64_t floor = -1;
  std::map<int, std::set<std::string>> hidden;  // by rank
  MakeProtocol make_protocol = [] { return std::make_unique<Protocol>(); };
  TestObserver observer;
  TestClock clock;

  std::optional<Digest> job_digest;  // instead of the job's own

  RunIdentity identity() const {
    RunIdentity identity = make_run_identity(job, layout, run_id, corpus, "numerics-1");
    if (job_digest) identity.job_digest = *job_digest;
    return identity;
  }

  // The result of each rank.
  std::vector<Status> run(const Body& body) {
    std::vector<Status> results(static_cast<std::size_t>(ranks));
    TestTransport::Shared wires;
    const RunIdentity who = identity();
    run_threads(ranks, [&](int rank) {
      TestFiles files(disk, rank);
      if (const auto at = hidden.find(rank); at != hidden.end()) files.hidden = at->second;
      TestTransport transport(wires, rank, ranks);
      DirectCompute compute;
      Position position{.attempt = attempt, .rank = rank};
      TransportCollectives collectives(transport, compute, position, observer);
      NoStore store;
      NoHost host;
      Parts parts{.files = files,
                  .transport = transport,
                  .collectives = collectives,
                  .store = store,
                  .compute = compute,
                  .clock = clock,
                  .host = host,
                  .observer = observer,
                  .position = position};
      const Groups groups = groups_of(job, layout, rank);
      const CheckpointContext ctx{
          .parts = parts, .job = job, .world = groups.world, .identity = who, .attempt = attempt, .floor = floor};
      const auto protocol = make_protocol();
      Status& result = results[static_cast<std::size_t>(rank)];
      result = body(ctx, *protocol);
      if (result.failed_with(Code::dead) || result.failed_with(Code::aborted)) transport.abort(result.error());
    });
    return results;
  }

  // Claims, finds, restores what is found and saves the given steps. The restored step is kept.
  std::vector<Status> train(const std::vector<std::int64_t>& steps) {
    return run([&](const CheckpointContext& ctx, Protocol& protocol) -> Status {
      FD_TRY_VOID(protocol.claim_attempt(ctx));
      FD_TRY(const FindResult found, protocol.find(ctx));
      if (found.chosen) {
        const StateView expected = test_state(job, ranks, ctx.world.me, found.chosen->step);
        StateView state = blank(expected);
        FD_TRY_VOID(protocol.restore(ctx, found, state));
        if (!same_state(state, expected)) return Error{.message = "restored something else"};
        if (ctx.world.me == 0) restored = found.chosen;
      }
      for (const std::int64_t step : steps) {
        const StateView state = test_state(job, ranks, ctx.world.me, step);
        FD_TRY(const Publication publication, protocol.publish(ctx, step, state, digest_of_state(state)));
        if (ctx.world.me == 0) published.push_back(publication.id);
      }
      return {};
    });
  }
  std::optional<CheckpointId> restored;
  std::vector<CheckpointId> published;  // rank 0's successes
};

inline void expect_ok(const std::vector<Status>& results) {
  for (const Status& result : results) EXPECT_TRUE(result.ok()) << (result.ok() ? "" : describe(result.error()));
}

inline CheckpointId id(std::int64_t step, std::int64_t attempt = 1, std::int64_t trial = 1) {
  return {.step = step, .attempt = attempt, .trial = trial};
}

// A disk with validated checkpoints of steps 2 and 4, by attempt 1. Nothing of it is durable: a copy has the visible
// tree only.
inline std::unique_ptr<TestDisk> two_checkpoints(CatalogKind catalog = CatalogKind::files) {
  TestDisk disk(catalog);
  expect_ok(TestAttempt(disk).train({2, 4}));
  return disk.copy();
}

template <class Type>
Error refusal(const Result<Type>& result) {
  return result ? Error{.message = "accepted"} : result.error();
}

inline Error injected_io_error() { return Error{.code = Code::io_error, .message = "injected", .injected = true}; }

// The error of the first rank that failed by itself, not because another gave up.
inline Error cause(const std::vector<Status>& results) {
  for (const Status& result : results) {
    if (!result && result.error().code != Code::aborted) return result.error();
  }
  return Error{.message = "nobody failed"};
}

// What the catalog on the disk says, as one rank reads it.
inline Survey survey_of(TestDisk& disk) {
  TestFiles files(disk, 0);
  DirectCompute compute;
  auto survey = make_catalog(disk.catalog)->survey(files, compute);
  EXPECT_TRUE(survey.ok()) << (survey.ok() ? "" : describe(survey.error()));
  return std::move(survey).value_or(Survey());
}

// For suites that both catalogs must pass.
class BothCatalogs : public testing::TestWithParam<CatalogKind> {};
inline std::string catalog_name(const testing::TestParamInfo<CatalogKind>& info) {
  return info.param == CatalogKind::files ? "Files" : "Rocksdb";
}
inline const auto both_catalogs = testing::Values(CatalogKind::files, CatalogKind::rocksdb);

inline Discovery discover_on(TestDisk& disk, const TestAttempt& attempt, WholeCandidates* whole = nullptr) {
  TestFiles files(disk, 0);
  DirectCompute compute;
  Protocol protocol;
  const RunIdentity identity = attempt.identity();
  return protocol.discover(files, compute, ExpectedRun{.identity = identity, .job = attempt.job}, whole);
}

}  // namespace firedrill

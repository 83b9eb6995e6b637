// DrillBuilder: histories for the tests and the benchmark of the properties. It writes what a correct run would; a test
// then changes, removes or adds single events.
#pragma once

#include <fmt/format.h>

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/seam/file_system.h"
#include "harness/check/property.h"

namespace firedrill {

struct Facts {
  int attempt = -1;  // absent: the attempt under way
  int rank = -1;
  std::int64_t step = 0;
  Phase phase = Phase::none;
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t c = 0;
  std::string_view name = {};
  std::string_view detail = {};
  Digest digest = {};
};

class DrillBuilder {
 public:
  explicit DrillBuilder(int ranks = 2, int steps = 8, int tensors = 2) : ranks_(ranks), tensors_(tensors) {
    plan.job.steps = steps;
    plan.job.checkpoint.keep_validated = 2;
    plan.job.data.last_batch = LastBatch::keep;
    for (int step = 1; step <= steps; ++step) {
      add(EventKind::golden, {.attempt = 0, .step = step, .digest = golden(step)});
      for (int lane = 0; lane < ranks_; ++lane) {
        add(EventKind::golden_sample, sample_facts(0, -1, step, lane));
      }
    }
  }

  Event& add(EventKind kind, const Facts& facts) {
    Event event;
    event.kind = kind;
    event.attempt = facts.attempt < 0 ? attempt_ : facts.attempt;
    event.rank = static_cast<std::int16_t>(facts.rank);
    event.step = facts.step;
    event.phase = facts.phase;
    event.a = facts.a;
    event.b = facts.b;
    event.c = facts.c;
    event.name = tables.names.intern(facts.name);
    event.detail = tables.names.intern(facts.detail);
    event.digest = facts.digest;
    events.push_back(event);
    return events.back();
  }

  void start(std::int64_t floor = -1) {
    ++attempt_;
    add(EventKind::attempt_started, {.a = ranks_, .b = floor, .name = "dp"});
  }
  void start_fresh() {
    start();
    for (int rank = 0; rank < ranks_; ++rank) add(EventKind::found, {.rank = rank, .a = -1});
    for (int rank = 0; rank < ranks_; ++rank) add(EventKind::started_fresh, {.rank = rank});
  }
  void start_from(const CheckpointId& id, std::int64_t floor) {
    start(floor);
    for (int rank = 0; rank < ranks_; ++rank) {
      add(EventKind::found, {.rank = rank, .a = id.step, .b = id.attempt, .c = id.trial, .name = to_string(id)});
    }
    for (int rank = 0; rank < ranks_; ++rank) {
      add(EventKind::restored, {.rank = rank,
                                .step = id.step,
                                .b = id.attempt,
                                .c = id.trial,
                                .name = to_string(id),
                                .digest = state(id.step, rank)});
    }
  }
  void train(int step) {
    for (int rank = 0; rank < ranks_; ++rank) {
      add(EventKind::sample, sample_facts(attempt_, rank, step, rank));
      add(EventKind::message_taken, {.rank = rank, .step = step, .a = 0, .b = attempt_});
    }
    for (int rank = 0; rank < ranks_; ++rank) {
      add(EventKind::step_done, {.rank = rank, .step = step, .digest = state(step, rank)});
    }
  }
  CheckpointId save(int step) {
    const CheckpointId id{.step = step, .attempt = attempt_, .trial = 1};
    const std::string text = to_string(id);
    for (int rank = 0; rank < ranks_; ++rank) {
      add(EventKind::save_started, {.rank = rank, .step = step, .a = 1});
      for (const char* kind : {"model", "optimizer", "extra"}) {
        const std::string path = fmt::format("shards/{}/{}-{}", text, kind, rank);
        for (const FileOp op : {FileOp::create, FileOp::write, FileOp::sync}) change_disk(rank, step, op, path);
        add(EventKind::shard_written, {.rank = rank, .step = step, .phase = Phase::save, .a = 1, .name = path});
      }
    }
    change_disk(0, step, FileOp::write, "tmp/manifest");
    change_disk(0, step, FileOp::rename, "manifests/" + text);
    on_disk_.push_back({.id = id, .validated = false, .intact = true});
    change_disk(0, step, FileOp::sync_directory, "manifests");
    add(EventKind::committed, {.rank = 0, .step = step, .phase = Phase::commit, .a = 1, .name = text});
    on_disk_.back().validated = true;
    change_disk(0, step, FileOp::create, "validated/" + text);
    add(EventKind::validated, {.rank = 0, .step = step, .phase = Phase::validate, .a = 1, .name = text});
    for (int rank = 0; rank < ranks_; ++rank) {
      add(EventKind::acknowledged, {.rank = rank, .step = step, .a = 1, .name = text, .digest = state(step, rank)});
    }
    if (std::ssize(on_disk_) > plan.job.checkpoint.keep_validated) retire_oldest();
    return id;
  }
  void retire_oldest() {
    const CheckpointId id = on_disk_.front().id;
    on_disk_.erase(on_disk_.begin());
    change_disk(0, 0, FileOp::remove, "manifests/" + to_string(id));
    add(EventKind::retired, {.rank = 0, .a = id.step, .b = id.attempt, .c = id.trial, .name = to_string(id)});
  }
  // An operation, and what probes then say.
  void change_disk(int rank, std::int64_t step, FileOp op, std::string_view path) {
    add(EventKind::disk_changed, {.rank = rank, .step = step, .a = static_cast<std::int64_t>(op), .name = path});
    probe(ProbeView::processes_die);
    if (plan.world == WorldKind::sim) probe(ProbeView::power_fails);
  }
  void probe(ProbeView view) { probe(right_probe(view)); }
  void probe(ProbeResult result) {
    const auto view = static_cast<std::int64_t>(result.view);
    add(EventKind::probe, {.a = tables.probes.add(std::move(result)), .b = view, .c = attempt_});
  }
  // What a correct disk yields now.
  ProbeResult right_probe(ProbeView view) {
    ProbeResult result{.view = view, .seen = on_disk_};
    if (on_disk_.empty()) return result;
    result.outcome = ProbeOutcome::found;
    result.found = on_disk_.back().id;
    result.complete = true;
    result.provenance_coherent = true;
    result.state = whole_state(result.found.step);
    return result;
  }

  // A whole good run: killed in step 5, resumed from the save of step 4.
  void whole_run() {
    start_fresh();
    for (int step = 1; step <= 4; ++step) {
      train(step);
      if (step % 2 == 0) save(step);
    }
    add(EventKind::sample, sample_facts(attempt_, 1, 5, 1));
    add(EventKind::rank_ended, {.rank = 1, .a = 2});
    add(EventKind::attempt_ended, {.a = 1, .b = ranks_ - 1});
    start_from({.step = 4, .attempt = 1, .trial = 1}, 4);
    for (int step = 5; step <= plan.job.steps; ++step) {
      train(step);
      if (step % 2 == 0) save(step);
    }
    add(EventKind::run_ended, {.a = 1, .b = 2});
  }

  // The n-th event of a kind, from 0; `rank` -2: of any rank.
  Event& nth(EventKind kind, int n, int rank = -2) {
    for (Event& event : events) {
      if (event.kind == kind && (rank == -2 || event.rank == rank) && n-- == 0) return event;
    }
    FD_CHECK(false, "no such event");
    return events.front();
  }
  NameId name(std::string_view text) { return tables.names.intern(text); }

  Verdict judge_with(Verdict (*property)(const Case&)) {
    History history(tables);
    for (const Event& event : events) history.append(event);
    return property(Case(history, plan));
  }

  // --- States: `tensors_` replicated tensors, and one per rank.
  Digest tensor(std::int64_t step, std::string_view name) const {
    return digest_of(fmt::format("{} at {}", name, step));
  }
  std::vector<NamedDigest> tensors_of(std::int64_t step, int first_rank, int last_rank) {
    std::vector<NamedDigest> list;
    const auto put = [&](std::string name) {
      const Digest digest = tensor(step, name);
      list.push_back({texts_.emplace_back(std::move(name)), digest});
    };
    for (int i = 0; i < tensors_; ++i) put(fmt::format("weight.{}", i));
    for (int rank = first_rank; rank <= last_rank; ++rank) put(fmt::format("random.lane.{}", rank));
    return list;
  }
  Digest state(std::int64_t step, int rank) {
    const Digest digest = digest_of(fmt::format("state of {} at {}", rank, step));
    if (!tables.states.knows(digest)) tables.states.describe(digest, tensors_of(step, rank, rank));
    return digest;
  }
  StateId whole_state(std::int64_t step) { return tables.states.describe(tensors_of(step, 0, ranks_ - 1)); }
  Digest golden(std::int64_t step) {
    const Digest digest = digest_of(fmt::format("golden at {}", step));
    if (!tables.states.knows(digest)) tables.states.describe(digest, tensors_of(step, 0, ranks_ - 1));
    return digest;
  }
  // A state that differs from `rank`'s at `step` in one tensor.
  Digest wrong_state(std::int64_t step, int rank, std::string_view tensor_name) {
    std::vector<NamedDigest> list = tensors_of(step, rank, rank);
    for (NamedDigest& one : list) {
      if (one.name == tensor_name) one.digest = digest_of(std::string_view("wrong"));
    }
    const Digest digest = digest_of(fmt::format("wrong {} of {} at {}", tensor_name, rank, step));
    tables.states.describe(digest, list);
    return digest;
  }

  Tables tables;
  Plan plan;
  std::vector<Event> events;

 private:
  // Two epochs of steps/2 batches; sample numbers from 0 in each.
  Facts sample_facts(int attempt, int rank, int step, int lane) const {
    const int steps_per_epoch = plan.job.steps / 2;
    return {.attempt = attempt,
            .rank = rank,
            .step = step,
            .a = (step - 1) / steps_per_epoch,
            .b = (step - 1) % steps_per_epoch * ranks_ + lane,
            .c = lane};
  }

  int ranks_;
  int tensors_;
  int attempt_ = 0;
  std::vector<SeenCheckpoint> on_disk_;
  std::deque<std::string> texts_;  // behind NamedDigest
};

}  // namespace firedrill

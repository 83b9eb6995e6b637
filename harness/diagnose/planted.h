// Runs with a cause planted that diagnosis must name first, and runs without one: drawn from a seed, for the tests and
// the bench of this folder. A planted cause makes what it hits at least four times as dear as in an undisturbed run.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/rng.h"
#include "harness/diagnose/diagnose.h"
#include "harness/run/run.h"

namespace firedrill::planted {

using std::chrono::microseconds;

struct Planted {
  Plan plan;
  std::vector<int> ranks;  // whom the diagnosis must name; empty: none
};

// In the order of the kinds: what is planted, not what a diagnosis may say besides.
inline constexpr std::array causes = {CauseKind::slow_rank, CauseKind::slow_input,    CauseKind::slow_link,
                                      CauseKind::slow_disk, CauseKind::small_buckets, CauseKind::unbalanced_stage};

inline Plan quiet(const std::string& job, const Layout& layout, WorldKind world, std::uint64_t seed) {
  Loaded<Job> loaded = load_job("scenarios/jobs/" + job + ".yaml");
  FD_CHECK(static_cast<bool>(loaded), "{}", loaded.mistakes.empty() ? job : loaded.mistakes.front());
  Plan plan{.scenario = job, .job = *loaded, .layout = layout, .world = world, .seed = seed, .accounting = true};
  plan.run_id = run_id_of(plan.job);
  plan.recovery.budget = 0;
  return plan;
}

// A few jobs and layouts in which all ranks of a stage have the same to do.
inline Plan clean(WorldKind world, std::uint64_t seed) {
  switch (seed % 5) {
    case 0: return quiet("nano", {.dp = 4}, world, seed);
    case 1: return quiet("tiny", {.dp = 4, .zero = 1}, world, seed);
    case 2: return quiet("nano-hybrid", {.dp = 2, .pp = 2}, world, seed);
    case 3: return quiet("tiny", {.dp = 4, .zero = 3, .bucket_bytes = 65536}, world, seed);
    default: return quiet("nano-hybrid", {.dp = 2, .tp = 2}, world, seed);
  }
}

class Draw {
 public:
  Draw(CauseKind cause, WorldKind world, std::uint64_t seed)
      : world_(world), seed_(seed), rng_(seed * 64 + static_cast<std::uint64_t>(cause)) {}

  Planted of(CauseKind cause) {
    switch (cause) {
      case CauseKind::slow_rank: return slow_rank();
      case CauseKind::slow_input: return slow_input();
      case CauseKind::slow_link: return slow_link();
      case CauseKind::slow_disk: return slow_disk();
      case CauseKind::small_buckets: return small_buckets();
      default: return unbalanced_stage();
    }
  }

 private:
  int below(int n) { return static_cast<int>(rng_.below(static_cast<std::uint64_t>(n))); }
  // `least` to twice as much.
  Duration delay(microseconds least) { return least + microseconds(below(static_cast<int>(least.count()))); }
  bool simulated() const { return world_ == WorldKind::sim; }
  Plan hybrid() const { return quiet("nano-hybrid", {.dp = 2, .pp = 2}, world_, seed_); }

  FaultSpec always(FaultKind kind, int rank, Duration delay) const {
    FaultSpec fault{.kind = kind, .at = {.attempt = std::nullopt, .rank = rank}, .times = 0};
    fault.delay = delay;
    fault.may_not_fire = true;  // not each pair talks in each phase
    return fault;
  }
  // Each kernel of these phases; in the sim world one takes 100 us or 300 us, in the other one about as long.
  void slow_down(Plan& plan, int rank, Duration delay) const {
    for (const Phase phase : {Phase::forward, Phase::backward}) {
      FaultSpec slow = always(FaultKind::slow, rank, delay);
      slow.at.phase = phase;
      slow.at.op = SeamOp::compute;
      plan.faults.push_back(slow);
    }
  }

  Planted slow_rank() {
    Plan plan = below(2) == 0 ? quiet("tiny", {.dp = 4}, world_, seed_) : hybrid();
    const int rank = below(4);
    slow_down(plan, rank, delay(microseconds(900)));
    return {std::move(plan), {rank}};
  }
  Planted slow_input() {
    Plan plan = quiet(below(2) == 0 ? "nano" : "tiny", {.dp = 4}, world_, seed_);
    const int rank = below(4);
    plan.faults.push_back(always(FaultKind::slow_shard, rank, delay(microseconds(simulated() ? 1'000 : 20'000))));
    return {std::move(plan), {rank}};
  }
  // Between two ranks; in the sim world sometimes all links of one.
  Planted slow_link() {
    Plan plan = quiet("tiny", {.dp = 4, .zero = 1 + 2 * below(2)}, world_, seed_);
    const int rank = below(4);
    const int peer = (rank + 1 + below(3)) % 4;
    if (simulated()) {
      FaultSpec slow{.kind = FaultKind::slow_link, .at = {.rank = rank, .step = 1, .phase = Phase::forward}};
      slow.delay = delay(microseconds(500));
      if (below(3) == 0) {
        slow.group = "dp";
        plan.faults = {slow};
        return {std::move(plan), {rank}};
      }
      slow.peer = peer;
      plan.faults = {slow};
    } else {
      for (const auto& [from, to] : {std::pair(rank, peer), std::pair(peer, rank)}) {
        FaultSpec slow = always(FaultKind::delay_message, from, delay(microseconds(5'000)));
        slow.peer = to;
        slow.at.op = SeamOp::send;
        for (const Phase phase : {Phase::forward, Phase::backward, Phase::exchange, Phase::optimizer}) {
          slow.at.phase = phase;
          plan.faults.push_back(slow);
        }
      }
    }
    return {std::move(plan), {std::min(rank, peer), std::max(rank, peer)}};
  }
  Planted slow_disk() {
    Plan plan = quiet(below(2) == 0 ? "nano" : "tiny", {.dp = 4}, world_, seed_);
    const int rank = below(4);
    plan.faults.push_back(always(FaultKind::slow_disk, rank, delay(microseconds(simulated() ? 2'000 : 10'000))));
    return {std::move(plan), {rank}};
  }
  // Twelve layers in buckets of one segment each.
  Planted small_buckets() {
    Plan plan = quiet("nano", {.dp = 4, .bucket_bytes = 64}, world_, seed_);
    plan.job.model.layers = 12 + below(5);
    plan.job.cluster.forward = microseconds(20);
    plan.job.cluster.backward = microseconds(60);
    plan.job.cluster.optimizer = microseconds(10);
    plan.job.cluster.message = microseconds(3);
    plan.run_id = run_id_of(plan.job);
    return {std::move(plan), {}};
  }
  // The head costs so much that its stage takes four to six times as long; processes are slowed down instead.
  Planted unbalanced_stage() {
    Plan plan = hybrid();
    if (simulated()) {
      const Duration head = delay(microseconds(3'000));
      plan.job.cluster.head = {.forward = head, .backward = 3 * head};
      return {std::move(plan), {2, 3}};
    }
    const int stage = below(2);
    const Duration longer = delay(microseconds(900));
    for (const int rank : {2 * stage, 2 * stage + 1}) slow_down(plan, rank, longer);
    return {std::move(plan), {2 * stage, 2 * stage + 1}};
  }

  WorldKind world_;
  std::uint64_t seed_;
  Rng rng_;
};

inline Planted draw(CauseKind cause, WorldKind world, std::uint64_t seed) { return Draw(cause, world, seed).of(cause); }

inline Diagnosis run_and_diagnose(Session& session, const Plan& plan) {
  const Result<RunReport> report = session.run(plan);
  FD_CHECK(static_cast<bool>(report), "{}", describe(report.error()));
  FD_CHECK(report->verdict == RunVerdict::pass, "seed {}: {}", plan.seed, report->reason);
  return diagnose(figures_of(session.history(), plan));
}

// Whether the cause was named first, and what was named for people.
inline bool names(const Diagnosis& diagnosis, CauseKind cause, const std::vector<int>& ranks) {
  return !diagnosis.causes.empty() && diagnosis.causes.front().kind == cause && diagnosis.causes.front().ranks == ranks;
}

}  // namespace firedrill::planted

// Metrics: what a run was worth, from its history alone: useful tokens per second, step times, time lost by cause, and
// the effective training-time ratio (ETTR) beside the estimate that is published for it.
//
// The wall time, from the start of the first attempt to the end of the run, is split without remainder:
//   start       of the first attempt, until all its ranks were ready to train
//   productive  steps that all ranks completed for the first time
//   checkpoint  completed saves that training waited for (of an asynchronous publish nothing)
//   detect      from a failure until its attempt had ended
//   restart     from there until the ranks of the next attempt had agreed what to resume from
//   restore     from there until all of them had restored it
//   redo        steps done again, and what a failed attempt did behind its last completed step
//   other       what is left: the end of the job, and attempts that ended before they began
// ETTR is productive / wall. The estimate is (1 - N r (u0 + dt/2)) / (1 + w/dt) of "Revisiting Reliability in
// Large-Scale Machine Learning Research Clusters" (arXiv 2410.21680), with the failures of this run as rate.
//
// Times are nanoseconds, virtual in the sim world. Threads: pure functions. Errors: none; an incomplete history gives
// what it has.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/history/accounting.h"
#include "harness/plan/plan.h"

namespace firedrill {

struct StepTimes {
  std::int64_t p50 = 0;
  std::int64_t p95 = 0;
  std::int64_t p99 = 0;
  std::int64_t max = 0;
  std::int64_t max_step = 0;
  int max_attempt = 0;
  int samples = 0;
};

struct LostTime {
  std::int64_t detect = 0;
  std::int64_t restart = 0;
  std::int64_t restore = 0;
  std::int64_t redo = 0;
  std::int64_t total() const { return detect + restart + restore + redo; }
};

// The published estimate and what it was computed from. Times of one failure, or of one save.
struct EttrEstimate {
  int nodes = 1;                      // N
  double failures_per_node_hour = 0;  // r
  std::int64_t restart = 0;           // u0: detect + restart + restore
  std::int64_t interval = 0;          // dt: training between two saves, waited for or beside it
  std::int64_t save = 0;              // w: what training waited for one, of an asynchronous save nothing
  double ettr = 0;
};

// What the estimate says of given figures; times in nanoseconds, `failures_per_nanosecond` of all nodes together (N r).
double published_ettr(double failures_per_nanosecond, double restart, double interval, double save);

struct Metrics {
  bool finished = false;
  int attempts = 0;
  int failures = 0;  // attempts that ended before the job was done
  std::int64_t wall = 0;
  std::int64_t start = 0;
  std::int64_t productive = 0;
  std::int64_t checkpoint = 0;
  std::int64_t other = 0;
  LostTime lost;
  double ettr = 0;
  std::optional<EttrEstimate> estimate;  // absent: no save of either kind was completed

  std::int64_t steps = 0;         // completed, each once
  std::int64_t steps_redone = 0;  // completions of a step that had been completed before
  std::int64_t tokens = 0;        // of `steps`
  double tokens_per_second = 0;
  StepTimes step;  // without saves

  int saves = 0;                           // that training waited for
  int saves_beside = 0;                    // asynchronous ones that were acknowledged
  std::int64_t checkpoint_age_max = 0;     // time since the last acknowledged one, or since the start
  std::int64_t checkpoint_age_at_end = 0;  // of the run

  std::optional<Spread> input;  // of one rank in one step
  double input_share = 0;       // of the time of all ranks
  std::optional<Spread> memory_high_water;
  std::vector<RankIdle> ranks;
  std::vector<SpentLine> groups;  // exchange time
};

// `account`: of the same history; where it is empty, so are input, memory, ranks and groups.
Metrics metrics_of(const History& history, const Plan& plan, const Accounting& account);

nlohmann::ordered_json json_of(const Metrics& metrics);
// Indented as part of a run's report. Empty where there was no time.
std::string to_text(const Metrics& metrics);

// Of which run the figures are.
struct MetricLabels {
  std::string scenario;
  std::string world;
  std::string layout;
};
// As OpenMetrics text that Prometheus' text parser reads too: gauges and a summary, ended by `# EOF`.
std::string to_open_metrics(const Metrics& metrics, const MetricLabels& labels);

}  // namespace firedrill

// What the ranks of a run spent their time on, what they sent and how long they waited, from the events time_spent,
// exchanged and memory_used. Where a figure is spread over ranks and steps, the largest is named with its rank: a mean
// hides the rank that holds up all others.
//
// Threads: pure functions. Errors: none; a history without such events gives an empty account.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/history/history.h"

namespace firedrill {

// The group under which `exchanged` tells what went to single peers (operation `to 3`; b: time in sends) and came from
// them (`from 3`; b: how long the messages were under way).
inline constexpr std::string_view link_group = "link";

// Of one figure over all ranks and steps (nearest-rank percentiles).
struct Spread {
  std::int64_t p50 = 0;
  std::int64_t p95 = 0;
  std::int64_t max = 0;
  int max_rank = -1;  // the lowest one, at its first such step
  std::int64_t max_step = 0;
  int samples = 0;
};

struct SpentLine {
  std::string what;  // phase or group
  Spread time;       // nanoseconds of one rank in one step
  Spread waiting;    // of these, for peers
};

struct ExchangedLine {
  std::string group;
  std::string operation;
  std::int64_t calls = 0;  // of all ranks
  std::int64_t bytes = 0;  // sent by all ranks
  Spread bytes_of_rank;    // in one step
  Spread waiting;          // nanoseconds of one rank in one step
};

// Bytes of one rank, whenever they changed.
struct MemoryLine {
  Spread high_water;
  Spread persistent;  // of them what outlives a step, and gradients
};

struct RankIdle {
  int rank = 0;
  std::int64_t time = 0;  // nanoseconds of all its phases
  std::int64_t idle = 0;  // of them waiting for peers
  double share() const { return time == 0 ? 0 : static_cast<double>(idle) / static_cast<double>(time); }
};

// The share of the ranks' time between the first forward and the last backward of a pipeline's step in which they
// computed neither.
struct Bubble {
  double p50 = 0;
  double p95 = 0;
  double max = 0;
  int samples = 0;  // pipelines times steps
};

struct Accounting {
  std::vector<SpentLine> phases;  // in the order of Phase, then "other"
  std::vector<SpentLine> groups;
  std::vector<ExchangedLine> exchanges;
  std::vector<RankIdle> ranks;
  int slowest_rank = -1;  // which had most to do: its time without its waiting
  std::optional<MemoryLine> memory;
  std::optional<Bubble> bubble;
  bool empty() const { return phases.empty(); }
};

// Of which pipeline a rank is a stage. Its first stage is the first to begin and the last to end.
struct PipelinePlace {
  int pipeline = -1;  // below zero: of none
  bool first = false;
};
using PipelineOf = std::function<PipelinePlace(int attempt, int rank)>;

Accounting accounting_of(const History& history, const PipelineOf& pipeline_of);

}  // namespace firedrill

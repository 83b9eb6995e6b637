#include "harness/history/accounting.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

namespace firedrill {
namespace {

using Place = std::tuple<int, int, std::int64_t>;  // attempt, rank, step
struct Sums {
  std::int64_t a = 0;
  std::int64_t b = 0;
};
using ByPlace = std::map<Place, Sums>;

// Nearest rank: the smallest sample that at least `percent` of all do not exceed.
template <class T>
T percentile(const std::vector<T>& ascending, std::size_t percent) {
  return ascending[(ascending.size() * percent + 99) / 100 - 1];
}

Spread spread_of(const ByPlace& samples, std::int64_t Sums::*figure) {
  Spread spread{.samples = static_cast<int>(samples.size())};
  std::vector<std::int64_t> ascending;
  for (const auto& [place, sums] : samples) {
    ascending.push_back(sums.*figure);
    if (spread.max_rank >= 0 && sums.*figure <= spread.max) continue;
    spread.max = sums.*figure;
    spread.max_rank = std::get<1>(place);
    spread.max_step = std::get<2>(place);
  }
  std::sort(ascending.begin(), ascending.end());
  if (ascending.empty()) return spread;
  spread.p50 = percentile(ascending, 50);
  spread.p95 = percentile(ascending, 95);
  return spread;
}

SpentLine line_of(std::string_view what, const ByPlace& samples) {
  return {.what = std::string(what), .time = spread_of(samples, &Sums::a), .waiting = spread_of(samples, &Sums::b)};
}

// One step of one pipeline.
struct Window {
  std::int64_t length = 0;
  std::int64_t busy = 0;  // of all its ranks
  int ranks = 0;
};

class Reader {
 public:
  explicit Reader(const History& history) : history_(history) {}

  void read(const PipelineOf& pipeline_of) {
    for (const std::uint32_t i : history_.of(EventKind::time_spent)) {
      const Event& event = history_[i];
      const std::string_view name = history_.text(event.name);
      if (name == "pipeline") {
        add_window(event, pipeline_of(event.attempt, event.rank));
        continue;
      }
      Sums& sums = spent_[std::string(name)][{event.attempt, event.rank, event.step}];
      sums.a += event.a;
      sums.b += event.b;
    }
    for (const std::uint32_t i : history_.of(EventKind::exchanged)) {
      const Event& event = history_[i];
      if (history_.text(event.name) == link_group) continue;  // the same once more, by peer
      auto& [calls, samples] =
          exchanged_[{std::string(history_.text(event.name)), std::string(history_.text(event.detail))}];
      calls += event.c;
      Sums& sums = samples[{event.attempt, event.rank, event.step}];
      sums.a += event.a;
      sums.b += event.b;
    }
    for (const std::uint32_t i : history_.of(EventKind::memory_used)) {
      const Event& event = history_[i];
      memory_[{event.attempt, event.rank, event.step}] = {.a = event.a, .b = event.b};
    }
  }

  Accounting account() {
    Accounting result;
    if (!memory_.empty()) {
      result.memory =
          MemoryLine{.high_water = spread_of(memory_, &Sums::a), .persistent = spread_of(memory_, &Sums::b)};
    }
    std::map<int, RankIdle> ranks;
    const auto add_phase = [&](const std::string& name) {
      const auto found = spent_.find(name);
      if (found == spent_.end()) return;
      result.phases.push_back(line_of(name, found->second));
      for (const auto& [place, sums] : found->second) {
        RankIdle& rank = ranks[std::get<1>(place)];
        rank.time += sums.a;
        rank.idle += sums.b;
      }
      spent_.erase(found);
    };
    for (int phase = 1; phase < phase_count; ++phase) add_phase(std::string(to_string(static_cast<Phase>(phase))));
    add_phase("other");
    for (const auto& [group, samples] : spent_) result.groups.push_back(line_of(group, samples));
    for (const auto& [key, value] : exchanged_) {
      ExchangedLine line{.group = key.first, .operation = key.second, .calls = value.first};
      line.bytes_of_rank = spread_of(value.second, &Sums::a);
      line.waiting = spread_of(value.second, &Sums::b);
      for (const auto& [place, sums] : value.second) line.bytes += sums.a;
      result.exchanges.push_back(std::move(line));
    }
    std::int64_t most = -1;
    for (auto& [number, rank] : ranks) {
      rank.rank = number;
      if (rank.time - rank.idle > most) {
        most = rank.time - rank.idle;
        result.slowest_rank = number;
      }
      result.ranks.push_back(rank);
    }
    result.bubble = bubble();
    return result;
  }

 private:
  void add_window(const Event& event, const PipelinePlace& place) {
    if (place.pipeline < 0) return;
    Window& window = windows_[{event.attempt, place.pipeline, event.step}];
    if (place.first) window.length = event.a;
    window.busy += event.a - event.b;
    ++window.ranks;
  }

  std::optional<Bubble> bubble() const {
    std::vector<double> shares;
    for (const auto& [place, window] : windows_) {
      const auto all = static_cast<double>(window.length) * window.ranks;
      if (all > 0) shares.push_back(1 - static_cast<double>(window.busy) / all);
    }
    if (shares.empty()) return std::nullopt;
    std::sort(shares.begin(), shares.end());
    return Bubble{.p50 = percentile(shares, 50),
                  .p95 = percentile(shares, 95),
                  .max = shares.back(),
                  .samples = static_cast<int>(shares.size())};
  }

  const History& history_;
  std::map<std::string, ByPlace> spent_;
  ByPlace memory_;
  std::map<std::pair<std::string, std::string>, std::pair<std::int64_t, ByPlace>> exchanged_;
  std::map<std::tuple<int, int, std::int64_t>, Window> windows_;  // by attempt, pipeline, step
};

}  // namespace

Accounting accounting_of(const History& history, const PipelineOf& pipeline_of) {
  Reader reader(history);
  reader.read(pipeline_of);
  return reader.account();
}

}  // namespace firedrill

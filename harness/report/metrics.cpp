#include "harness/report/metrics.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace firedrill {
namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

// When all ranks of an attempt had done something.
struct Together {
  std::int64_t last = 0;
  int ranks = 0;

  void add(std::int64_t time) {
    last = std::max(last, time);
    ++ranks;
  }
  std::optional<std::int64_t> of(std::int64_t world_size) const {
    return ranks >= world_size ? std::optional(last) : std::nullopt;
  }
};

struct Save {
  std::int64_t last = 0;  // of its events
  bool ended = false;     // acknowledged, or reported as failed
  bool kept = false;      // acknowledged
  bool beside = false;    // asynchronous: training did not wait
};

struct Attempt {
  int number = 0;
  std::int64_t world_size = 0;
  std::int64_t started = 0;
  std::int64_t ended = 0;
  bool over = false;      // its end is in the history
  bool finished = false;  // all ranks got to the end of the job
  Together found;
  Together ready;
  std::map<std::int64_t, Together> steps;
  std::map<std::int64_t, Save> saves;
  std::int64_t failed = never;       // the first rank that ended badly or was blamed
  std::vector<std::int64_t> faults;  // when they fired
};

bool saves_in(Phase phase) {
  return phase == Phase::save || phase == Phase::commit || phase == Phase::validate || phase == Phase::retire;
}

// Reads one event of a rank of `attempt`, or a fault in it.
void read(const Event& event, Attempt& attempt) {
  const std::int64_t time = event.time.count();
  switch (event.kind) {
    case EventKind::found: attempt.found.add(time); break;
    case EventKind::restored:
    case EventKind::started_fresh: attempt.ready.add(time); break;
    case EventKind::step_done: attempt.steps[event.step].add(time); break;
    case EventKind::save_dispatched: attempt.saves[event.step].beside = true; break;
    case EventKind::acknowledged: attempt.saves[event.step].ended = attempt.saves[event.step].kept = true; break;
    case EventKind::save_failed:
      if (event.b != 0) attempt.saves[event.step].ended = true;
      break;
    case EventKind::fault_fired: attempt.faults.push_back(time); break;
    case EventKind::suspected: attempt.failed = std::min(attempt.failed, time); break;
    case EventKind::rank_ended:
      if (event.a != 0) attempt.failed = std::min(attempt.failed, time);
      break;
    default: break;
  }
  if (event.rank < 0 || !saves_in(event.phase)) return;
  Save& save = attempt.saves[event.step];
  save.last = std::max(save.last, time);
}

// When the failure that ended the attempt happened: with the last fault before its first consequence.
std::int64_t failure_of(const Attempt& attempt) {
  if (attempt.failed == never) return attempt.ended;
  std::int64_t failure = -1;
  for (const std::int64_t fault : attempt.faults) {
    if (fault <= attempt.failed) failure = std::max(failure, fault);
  }
  return failure < 0 ? attempt.failed : failure;
}

struct Step {
  std::int64_t time = 0;
  std::int64_t step = 0;
  int attempt = 0;
};

class Clockwork {
 public:
  explicit Clockwork(Metrics& metrics) : metrics_(metrics) {}

  // Attempts in their order.
  void add(const Attempt& attempt) {
    if (metrics_.attempts == 0) ended_ = attempt.started;
    const bool first = metrics_.attempts++ == 0;
    if (attempt.over && !attempt.finished) ++metrics_.failures;
    const auto found = attempt.found.of(attempt.world_size);
    const auto ready = attempt.ready.of(attempt.world_size);
    std::int64_t at = ended_;
    const auto book = [&at](std::int64_t until, std::int64_t& where) {
      where += std::max<std::int64_t>(0, until - at);
      at = std::max(at, until);
    };
    const std::int64_t failure = attempt.finished ? attempt.ended : failure_of(attempt);
    book(found.value_or(failure), first ? metrics_.start : metrics_.lost.restart);
    if (found) book(ready.value_or(failure), first ? metrics_.start : metrics_.lost.restore);
    if (ready) train(attempt, at);
    if (attempt.finished) {
      book(attempt.ended, metrics_.other);
    } else {
      book(failure, metrics_.lost.redo);
      book(attempt.ended, metrics_.lost.detect);
    }
    ended_ = at;
    if (!attempt.steps.empty()) best_before_ = std::max(best_before_, best_);
  }

  // To the end of the run.
  void close(std::int64_t end) {
    metrics_.other += std::max<std::int64_t>(0, end - ended_);
    metrics_.steps = static_cast<std::int64_t>(done_.size());
    if (steps_.empty()) return;
    std::sort(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) {
      return std::tie(a.time, b.attempt, b.step) < std::tie(b.time, a.attempt, a.step);
    });
    const auto percentile = [this](std::size_t percent) {
      return steps_[(steps_.size() * percent + 99) / 100 - 1].time;
    };
    metrics_.step = {.p50 = percentile(50),
                     .p95 = percentile(95),
                     .p99 = percentile(99),
                     .max = steps_.back().time,
                     .max_step = steps_.back().step,
                     .max_attempt = steps_.back().attempt,
                     .samples = static_cast<int>(steps_.size())};
  }

  const std::set<std::int64_t>& done() const { return done_; }

 private:
  // The steps that all ranks completed, and the saves between them.
  void train(const Attempt& attempt, std::int64_t& at) {
    for (const auto& [step, together] : attempt.steps) {
      const auto done = together.of(attempt.world_size);
      if (!done || *done < at) continue;
      const std::int64_t time = *done - at;
      at = *done;
      const bool again = step <= best_before_;
      (again ? metrics_.lost.redo : metrics_.productive) += time;
      if (again) ++metrics_.steps_redone;
      steps_.push_back({.time = time, .step = step, .attempt = attempt.number});
      best_ = std::max(best_, step);
      done_.insert(step);
      const auto save = attempt.saves.find(step);
      if (save == attempt.saves.end() || !save->second.ended) continue;
      if (save->second.beside) {
        if (save->second.kept) ++metrics_.saves_beside;
        continue;
      }
      ++metrics_.saves;
      metrics_.checkpoint += std::max<std::int64_t>(0, save->second.last - at);
      at = std::max(at, save->second.last);
    }
  }

  Metrics& metrics_;
  std::int64_t ended_ = 0;        // everything before it is booked
  std::int64_t best_ = 0;         // highest step completed
  std::int64_t best_before_ = 0;  // in former attempts
  std::vector<Step> steps_;
  std::set<std::int64_t> done_;
};

std::vector<Attempt> attempts_of(const History& history) {
  std::vector<Attempt> attempts;
  for (const Event& event : history.events()) {
    if (event.kind == EventKind::attempt_started) {
      attempts.push_back({.number = event.attempt, .world_size = event.a, .started = event.time.count()});
      attempts.back().ended = attempts.back().started;
      continue;
    }
    // What a former attempt did late counts for it.
    const auto own = std::find_if(attempts.rbegin(), attempts.rend(),
                                  [&event](const Attempt& one) { return one.number == event.attempt; });
    if (own == attempts.rend() || event.kind == EventKind::probe || event.kind == EventKind::run_ended) continue;
    if (!own->over) own->ended = std::max(own->ended, event.time.count());
    if (event.kind == EventKind::attempt_ended) {
      own->over = true;
      own->ended = event.time.count();
      own->finished = event.c == own->world_size;
    } else {
      read(event, *own);
    }
  }
  return attempts;
}

// Samples of the completed steps, each once, however often it was consumed and by how many ranks.
std::int64_t samples_of(const History& history, const std::set<std::int64_t>& steps) {
  std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>> samples;
  for (const std::uint32_t i : history.of(EventKind::sample)) {
    const Event& event = history[i];
    if (steps.contains(event.step)) samples.emplace_back(event.step, event.c, event.a, event.b);
  }
  std::sort(samples.begin(), samples.end());
  return std::unique(samples.begin(), samples.end()) - samples.begin();
}

void add_checkpoint_age(const History& history, std::int64_t end, Metrics& metrics) {
  std::int64_t last = 0;
  std::int64_t step = -1;
  for (const std::uint32_t i : history.of(EventKind::acknowledged)) {
    const Event& event = history[i];
    if (event.step <= step) continue;
    step = event.step;
    metrics.checkpoint_age_max = std::max(metrics.checkpoint_age_max, event.time.count() - last);
    last = event.time.count();
  }
  metrics.checkpoint_age_at_end = std::max<std::int64_t>(0, end - last);
  metrics.checkpoint_age_max = std::max(metrics.checkpoint_age_max, metrics.checkpoint_age_at_end);
}

void add_account(const History& history, const Accounting& account, Metrics& metrics) {
  for (const SpentLine& line : account.phases) {
    if (line.what == to_string(Phase::input)) metrics.input = line.time;
  }
  std::int64_t all = 0;
  for (const RankIdle& rank : account.ranks) all += rank.time;
  std::int64_t input = 0;
  for (const std::uint32_t i : history.of(EventKind::time_spent)) {
    if (history.text(history[i].name) == to_string(Phase::input)) input += history[i].a;
  }
  metrics.input_share = all == 0 ? 0 : static_cast<double>(input) / static_cast<double>(all);
  if (account.memory) metrics.memory_high_water = account.memory->high_water;
  metrics.ranks = account.ranks;
  metrics.groups = account.groups;
}

std::optional<EttrEstimate> estimate_of(const Metrics& metrics, const Plan& plan) {
  const int saves = metrics.saves + metrics.saves_beside;
  if (saves == 0 || metrics.wall <= 0) return std::nullopt;
  const int per_node = std::max(1, plan.job.cluster.ranks_per_node);
  EttrEstimate estimate{.nodes = (plan.layout.world_size() + per_node - 1) / per_node};
  const double rate = static_cast<double>(metrics.failures) / static_cast<double>(metrics.wall);
  constexpr double hour = 3.6e12;
  estimate.failures_per_node_hour = rate * hour / estimate.nodes;
  const LostTime& lost = metrics.lost;
  if (metrics.failures > 0) estimate.restart = (lost.detect + lost.restart + lost.restore) / metrics.failures;
  estimate.interval = (metrics.productive + lost.redo) / saves;
  estimate.save = metrics.checkpoint / saves;
  if (estimate.interval <= 0) return std::nullopt;
  estimate.ettr = published_ettr(rate, static_cast<double>(estimate.restart), static_cast<double>(estimate.interval),
                                 static_cast<double>(estimate.save));
  return estimate;
}

}  // namespace

double published_ettr(double failures_per_nanosecond, double restart, double interval, double save) {
  return (1 - failures_per_nanosecond * (restart + interval / 2)) / (1 + save / interval);
}

Metrics metrics_of(const History& history, const Plan& plan, const Accounting& account) {
  Metrics metrics;
  const std::vector<Attempt> attempts = attempts_of(history);
  if (attempts.empty()) return metrics;
  std::int64_t end = attempts.back().ended;
  for (const std::uint32_t i : history.of(EventKind::run_ended)) {
    end = std::max(end, history[i].time.count());
    metrics.finished = history[i].a == 1;
  }
  metrics.wall = end - attempts.front().started;
  Clockwork clockwork(metrics);
  for (const Attempt& attempt : attempts) clockwork.add(attempt);
  clockwork.close(end);
  metrics.tokens = samples_of(history, clockwork.done()) * plan.job.model.sequence;
  if (metrics.wall > 0) {
    metrics.ettr = static_cast<double>(metrics.productive) / static_cast<double>(metrics.wall);
    metrics.tokens_per_second = static_cast<double>(metrics.tokens) * 1e9 / static_cast<double>(metrics.wall);
  }
  add_checkpoint_age(history, end, metrics);
  add_account(history, account, metrics);
  metrics.estimate = estimate_of(metrics, plan);
  return metrics;
}

}  // namespace firedrill

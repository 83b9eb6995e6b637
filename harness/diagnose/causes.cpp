#include "harness/diagnose/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/report/accounting.h"

namespace firedrill {
namespace {

// Writing shards: the coordinator's operations are dearer ones (it makes the directory), and there are few samples.
constexpr double disk_stands_out = 3;
constexpr double coordinators_disk_stands_out = 4.5;
// Of a step: input that all ranks wait for so long is worth a look.
constexpr double input_share_of_all = 0.25;
// One part explains all if it costs so many times as much as the rest together.
constexpr std::int64_t explains_all = 4;
// Of how much longer a stage takes than the others: what its layers must explain.
constexpr double share_explained = 0.5;

std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

std::string times_text(double times) { return times >= 100 ? "over 100" : fmt::format("{:.1f}", times); }

// One part of one rank that stands out.
struct Excess {
  StepPart part = StepPart::input;
  std::int64_t value = 0;
  std::int64_t normal = 0;
  std::int64_t cost = 0;
  double times() const { return ratio_of(value, normal); }
  bool is_beyond(double limit, std::int64_t floor) const { return times() >= limit && value - normal >= floor; }
  std::string words() const {
    return fmt::format("{} {}{} against {} of its peers, {} times as long", to_string(part), duration_text(value),
                       part == StepPart::checkpoint ? " a file operation" : "", duration_text(normal),
                       times_text(times()));
  }
};

// Ranks that do the same work as `one` and told what it takes them, itself left out. Writing is the same for all
// stages, whatever they hold: by operation.
std::vector<const RankFigures*> peers_of(const Figures& figures, const RankFigures& one, StepPart part) {
  std::vector<const RankFigures*> peers;
  for (const RankFigures& other : figures.ranks) {
    const bool alike = part == StepPart::checkpoint || other.stage == one.stage;
    if (other.rank != one.rank && alike && other.is_known(part)) peers.push_back(&other);
  }
  return peers;
}

template <class Get>
std::int64_t median_over(const std::vector<const RankFigures*>& ranks, Get get) {
  std::vector<std::int64_t> samples;
  for (const RankFigures* rank : ranks) samples.push_back(get(*rank));
  return median_of(std::move(samples));
}

int save_every(const Plan& plan) { return plan.job.checkpoint.every > 0 ? plan.job.checkpoint.every : plan.job.steps; }

// A save's time, spread over the steps between two.
Excess disk_of(const Figures& figures, const RankFigures& rank) {
  const auto others = peers_of(figures, rank, StepPart::checkpoint);
  const auto per_change = [](const RankFigures& one) { return one.per_file_change; };
  Excess excess{.part = StepPart::checkpoint,
                .value = rank.per_file_change,
                .normal = others.empty() ? rank.per_file_change : median_over(others, per_change)};
  if (excess.value <= excess.normal) return excess;
  const double share = 1 - 1 / ratio_of(excess.value, excess.normal);
  excess.cost = static_cast<std::int64_t>(share * static_cast<double>(rank.of(StepPart::checkpoint).own)) /
                save_every(figures.plan);
  return excess;
}

std::vector<Excess> excesses_of(const Figures& figures, const RankFigures& rank) {
  std::vector<Excess> found;
  const Floors floors = floors_of(figures.plan);
  for (const StepPart part : step_parts) {
    const auto peers = peers_of(figures, rank, part);
    if (part == StepPart::checkpoint || peers.empty() || !rank.is_known(part)) continue;
    Excess excess{.part = part,
                  .value = rank.of(part).own,
                  .normal = median_over(peers, [part](const RankFigures& one) { return one.of(part).own; })};
    excess.cost = excess.value - excess.normal;
    if (excess.is_beyond(stands_out, floors.part) && counts(excess.cost, figures.step)) found.push_back(excess);
  }
  if (!rank.is_known(StepPart::checkpoint)) return found;
  const Excess disk = disk_of(figures, rank);
  const double limit = rank.rank == 0 ? coordinators_disk_stands_out : disk_stands_out;
  if (disk.is_beyond(limit, floors.file_operation) && counts(disk.cost, figures.step)) found.push_back(disk);
  return found;
}

// Which one cause explains the parts that stand out.
CauseKind kind_of(const std::vector<Excess>& excesses) {
  std::int64_t all = 0;
  for (const Excess& excess : excesses) all += excess.cost;
  for (const Excess& excess : excesses) {
    if (excess.cost < explains_all * (all - excess.cost)) continue;
    if (excess.part == StepPart::input) return CauseKind::slow_input;
    if (excess.part == StepPart::checkpoint) return CauseKind::slow_disk;
  }
  return CauseKind::slow_rank;
}

Change change_for(CauseKind kind, const std::vector<int>& ranks, int of_node) {
  const std::string of_ranks = " of " + ranks_text(ranks);
  const std::string node = fmt::format("node {}", of_node);
  if (kind == CauseKind::slow_input) return {"input" + of_ranks, node, "another source or reader, or a larger cache"};
  if (kind == CauseKind::slow_disk) return {"storage" + of_ranks, node, "another mount, or another node"};
  return {"node" + of_ranks, node, "a spare node; then measure the old one: firedrill preflight"};
}

// Of the same kind on all ranks of one node. They run side by side: a step waits for the slowest.
Cause joined(const std::vector<Cause>& of_ranks, int node) {
  Cause all = of_ranks.front();
  all.ranks.clear();
  all.evidence.clear();
  for (const Cause& cause : of_ranks) {
    all.ranks.push_back(cause.ranks.front());
    all.cost = std::max(all.cost, cause.cost);
    all.times = std::max(all.times, cause.times);
    all.evidence += fmt::format("{}rank {}: {}", all.evidence.empty() ? "" : "; ", cause.ranks.front(), cause.evidence);
  }
  all.where = fmt::format("node {} ({})", node, ranks_text(all.ranks));
  all.change = change_for(all.kind, all.ranks, node);
  return all;
}

// A node whose ranks all stand out with one kind is one cause and not as many as it has ranks.
std::vector<Cause> by_node(const Figures& figures, std::vector<Cause> causes) {
  std::map<int, std::set<int>> ranks;
  for (const RankFigures& rank : figures.ranks) ranks[rank.node].insert(rank.rank);
  for (const auto& [node, on_it] : ranks) {
    if (on_it.size() < 2) continue;
    std::map<CauseKind, std::vector<Cause>> kinds;
    for (const Cause& cause : causes) {
      if (on_it.contains(cause.ranks.front())) kinds[cause.kind].push_back(cause);
    }
    if (kinds.size() != 1 || kinds.begin()->second.size() != on_it.size()) continue;
    std::erase_if(causes, [&on = on_it](const Cause& cause) { return on.contains(cause.ranks.front()); });
    causes.push_back(joined(kinds.begin()->second, node));
  }
  return causes;
}

// A stage that is one rank: what it takes is the rank's doing where its layers do not explain half of it.
bool is_the_ranks_doing(const Plan& plan, int stage, double times) {
  std::vector<double> others;
  for (int other = 0; other < plan.layout.pp; ++other) {
    if (other != stage) others.push_back(expected_work(plan, other));
  }
  std::sort(others.begin(), others.end());
  const double expected = expected_work(plan, stage) / others[(others.size() - 1) / 2];
  return expected - 1 < share_explained * (times - 1);
}

// No rank stands out, and yet all wait for their input.
std::vector<Cause> input_of_all(const Figures& figures) {
  std::vector<const RankFigures*> all;
  for (const RankFigures& rank : figures.ranks) {
    if (rank.is_known(StepPart::input)) all.push_back(&rank);
  }
  const std::int64_t input = median_over(all, [](const RankFigures& one) { return one.of(StepPart::input).own; });
  if (figures.step == 0 || static_cast<double>(input) < input_share_of_all * static_cast<double>(figures.step)) {
    return {};
  }
  return {{.kind = CauseKind::slow_input,
           .where = "all ranks",
           .ranks = {},
           .cost = input,
           .times = 1,
           .evidence = fmt::format("input takes {} of a step of {} on all ranks", duration_text(input),
                                   duration_text(figures.step)),
           .change = {"input", "as it is", "another source, more readers, or a larger cache"}}};
}

}  // namespace

double ratio_of(std::int64_t value, std::int64_t normal) {
  return static_cast<double>(value) / static_cast<double>(std::max<std::int64_t>(1, normal));
}

bool counts(std::int64_t cost, std::int64_t whole) {
  return static_cast<double>(cost) >= share_that_counts * static_cast<double>(whole);
}

Floors floors_of(const Plan& plan) {
  if (plan.world == WorldKind::sim) return {};
  return {.part = 1'000'000, .file_operation = 3'000'000, .message = 300'000};
}

std::vector<Cause> slow_ranks(const Figures& figures) {
  std::vector<Cause> causes;
  for (const RankFigures& rank : figures.ranks) {
    const std::vector<Excess> excesses = excesses_of(figures, rank);
    if (excesses.empty()) continue;
    const CauseKind kind = kind_of(excesses);
    Cause cause{.kind = kind,
                .where = fmt::format("rank {} (node {})", rank.rank, rank.node),
                .ranks = {rank.rank},
                .evidence = {},
                .change = change_for(kind, {rank.rank}, rank.node)};
    for (const Excess& excess : excesses) {
      cause.cost += excess.cost;
      cause.times = std::max(cause.times, excess.times());
      cause.evidence += (cause.evidence.empty() ? "" : "; ") + excess.words();
    }
    causes.push_back(std::move(cause));
  }
  causes = by_node(figures, std::move(causes));
  const bool input_stands_out =
      std::any_of(causes.begin(), causes.end(), [](const Cause& cause) { return cause.kind == CauseKind::slow_input; });
  if (!input_stands_out) {
    for (Cause& cause : input_of_all(figures)) causes.push_back(std::move(cause));
  }
  return causes;
}

std::vector<Cause> unbalanced_stages(const Figures& figures) {
  // The least of a stage's ranks: what the stage costs each of them, whoever else is slow.
  std::map<int, std::vector<int>> ranks;
  std::map<int, std::int64_t> work;
  for (const RankFigures& rank : figures.ranks) {
    if (!rank.is_known(StepPart::forward)) continue;
    const std::int64_t own = rank.of(StepPart::forward).own + rank.of(StepPart::backward).own;
    const auto [at, first] = work.emplace(rank.stage, own);
    if (!first) at->second = std::min(at->second, own);
    ranks[rank.stage].push_back(rank.rank);
  }
  std::vector<Cause> causes;
  for (const auto& [stage, own] : work) {
    std::vector<std::int64_t> others;
    for (const auto& [other, its] : work) {
      if (other != stage) others.push_back(its);
    }
    const std::int64_t normal = median_of(others);
    if (others.empty() || ratio_of(own, normal) < stands_out || !counts(own - normal, figures.step)) continue;
    if (own - normal < floors_of(figures.plan).part) continue;
    if (ranks[stage].size() == 1 && is_the_ranks_doing(figures.plan, stage, ratio_of(own, normal))) {
      const int rank = ranks[stage].front();
      const int node = node_of(figures.plan.job, rank);
      causes.push_back(
          {.kind = CauseKind::slow_rank,
           .where = fmt::format("rank {} (node {})", rank, node),
           .ranks = {rank},
           .cost = own - normal,
           .times = ratio_of(own, normal),
           .evidence = fmt::format("forward and backward take {} against {} in the other stages, {} times "
                                   "as long, which its layers do not explain",
                                   duration_text(own), duration_text(normal), times_text(ratio_of(own, normal))),
           .change = change_for(CauseKind::slow_rank, {rank}, node)});
      continue;
    }
    const Layout& layout = figures.plan.layout;
    const bool finer = figures.plan.job.model.layers >= 2 * layout.pp * layout.virtual_stages;
    causes.push_back(
        {.kind = CauseKind::unbalanced_stage,
         .where = fmt::format("stage {} ({})", stage, ranks_text(ranks[stage])),
         .ranks = ranks[stage],
         .cost = own - normal,
         .times = ratio_of(own, normal),
         .evidence = fmt::format("forward and backward take {} on every rank of the stage against {} in the others, {} "
                                 "times as long{}",
                                 duration_text(own), duration_text(normal), times_text(ratio_of(own, normal)),
                                 ranks[stage].size() == 1 ? "; so its layers let expect" : ""),
         .change = finer ? Change{"layout.virtual_stages", std::to_string(layout.virtual_stages),
                                  fmt::format("{}, with schedule: interleaved", 2 * layout.virtual_stages)}
                         : Change{"layout.pp", std::to_string(layout.pp), std::to_string(std::max(1, layout.pp / 2))}});
  }
  return causes;
}

}  // namespace firedrill

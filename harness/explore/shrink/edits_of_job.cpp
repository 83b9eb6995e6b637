// A shorter run, on fewer ranks, of a plainer job.
#include <algorithm>
#include <array>

#include "harness/explore/shrink/edits.h"

namespace firedrill {
namespace {

void keep_faults_inside(Plan& plan) {
  const std::int64_t steps = plan.job.steps;
  for (FaultSpec& fault : plan.faults) {
    if (fault.at.step) fault.at.step = std::min(*fault.at.step, steps);
    int ranks = plan.layout.world_size();
    if (plan.recovery.layout) ranks = std::max(ranks, plan.recovery.layout->world_size());
    if (fault.at.attempt) ranks = plan.layout_of(*fault.at.attempt).world_size();
    fault.at.rank %= ranks;
    if (fault.peer) fault.peer = *fault.peer % ranks;
  }
}

// Layouts with one degree or one feature less, the boldest first.
std::vector<Layout> plainer(const Layout& layout) {
  std::vector<Layout> list;
  const auto add = [&](const Layout& other) {
    if (other != layout && std::ranges::find(list, other) == list.end()) list.push_back(other);
  };
  const auto change = [&](auto edit) {
    Layout other = layout;
    edit(other);
    add(other);
  };
  add(Layout{});
  add(Layout{.guard = layout.guard, .replica_check = layout.replica_check, .rerun = layout.rerun});
  add(Layout{.dp = std::min(layout.dp, 2),
             .guard = layout.guard,
             .replica_check = layout.replica_check,
             .rerun = layout.rerun});
  constexpr std::array degrees = {&Layout::ep, &Layout::cp, &Layout::pp, &Layout::tp, &Layout::dp};
  for (const auto degree : degrees) {
    change([&](Layout& other) { other.*degree = 1; });
    if (layout.*degree > 2) change([&](Layout& other) { other.*degree /= 2; });
  }
  change([](Layout& other) { other.zero = 0; });
  if (layout.zero > 0) change([](Layout& other) { --other.zero; });
  change([](Layout& other) { other.sequence_parallel = false; });
  change([](Layout& other) {
    other.schedule = PipelineSchedule::one_f_one_b;
    other.virtual_stages = 1;
  });
  change([](Layout& other) { other.recompute = Recompute::segment; });
  change([](Layout& other) { other.prefetch = false; });
  change([](Layout& other) { other.bucket_bytes = 0; });
  change([](Layout& other) { other.guard = Guard::off; });
  if (layout.guard == Guard::check) change([](Layout& other) { other.guard = Guard::record; });
  change([](Layout& other) { other.replica_check = 0; });
  change([](Layout& other) { other.rerun = false; });
  return list;
}

using Option = void (*)(Job& job);

// Those that change no bits come first: they ask for no new golden.
constexpr std::array<Option, 5> options_without_bits = {
    [](Job& job) { job.checkpoint.mode = PublishMode::sync; },
    [](Job& job) { job.checkpoint.catalog = CatalogKind::files; },
    [](Job& job) {
      job.checkpoint.on_error = OnError::stop;
      job.checkpoint.failures_max = 0;
    },
    [](Job& job) { job.checkpoint.keep_validated = 2; },
    [](Job& job) { job.cluster = {.ranks_per_node = job.cluster.ranks_per_node}; },
};
constexpr std::array<Option, 9> options_with_bits = {
    [](Job& job) { job.model.dropout = 0; },
    [](Job& job) { job.batch.accumulation = 1; },
    [](Job& job) { job.optimizer.clip = 0; },
    [](Job& job) { job.optimizer.weight_decay = 0; },
    [](Job& job) {
      job.optimizer.warmup_steps = 0;
      job.optimizer.decay = Decay::constant;
    },
    [](Job& job) { job.data.held_out = 0; },
    [](Job& job) { job.precision = {}; },
    [](Job& job) { job.model.tied_embedding = false; },
    [](Job& job) {
      job.model.experts = 0;
      job.model.top_k = ModelSpec{}.top_k;
      job.model.capacity_factor = ModelSpec{}.capacity_factor;
      job.model.balance_loss = ModelSpec{}.balance_loss;
    },
};

// All of the options, each half of them, each one: what leaves the job as it is left out.
void add_plainer(const Plan& plan, std::span<const Option> options, std::vector<Plan>& simpler) {
  const std::string before = to_json(plan);
  const auto add = [&](std::size_t begin, std::size_t end) {
    Plan other = plan;
    for (std::size_t i = begin; i < end; ++i) options[i](other.job);
    if (to_json(other) != before) simpler.push_back(std::move(other));
  };
  const std::size_t half = options.size() / 2;
  add(0, options.size());
  add(0, half);
  add(half, options.size());
  for (std::size_t i = 0; i < options.size(); ++i) add(i, i + 1);
}

}  // namespace

std::vector<Plan> fewer_steps(const Plan& plan) {
  const int steps = plan.job.steps;
  const int every = std::max(plan.job.checkpoint.every, 1);
  std::int64_t last = 1;
  for (const FaultSpec& fault : plan.faults) last = std::max(last, fault.at.step.value_or(1));
  std::vector<int> fewer;
  for (const std::int64_t wanted : {std::int64_t{1}, last, last + 1, last + every, std::int64_t{steps} / 2,
                                    std::int64_t{steps} - every, std::int64_t{steps} - 1}) {
    const auto count = static_cast<int>(std::clamp<std::int64_t>(wanted, 1, steps));
    if (count < steps && std::ranges::find(fewer, count) == fewer.end()) fewer.push_back(count);
  }
  std::ranges::sort(fewer);
  std::vector<Plan> simpler;
  for (const int count : fewer) {
    simpler.push_back(plan);
    simpler.back().job.steps = count;
    keep_faults_inside(simpler.back());
  }
  return simpler;
}

std::vector<Plan> fewer_ranks(const Plan& plan) {
  std::vector<Plan> simpler;
  const auto add = [&](const Layout& layout, const std::optional<Layout>& restarts) {
    simpler.push_back(plan);
    simpler.back().layout = layout;
    simpler.back().recovery.layout = restarts;
    keep_faults_inside(simpler.back());
  };
  const std::optional<Layout>& restarts = plan.recovery.layout;
  if (restarts) add(plan.layout, std::nullopt);
  if (restarts && restarts->world_size() <= plan.layout.world_size()) add(*restarts, std::nullopt);
  for (const Layout& layout : plainer(plan.layout)) add(layout, restarts);
  if (!restarts) return simpler;
  for (const Layout& layout : plainer(*restarts)) add(plan.layout, layout);
  return simpler;
}

std::vector<Plan> plainer_job(const Plan& plan) {
  std::vector<Plan> simpler;
  add_plainer(plan, options_without_bits, simpler);
  add_plainer(plan, options_with_bits, simpler);
  return simpler;
}

}  // namespace firedrill

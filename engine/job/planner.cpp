#include "engine/job/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "engine/base/text.h"
#include "engine/base/units.h"
#include "engine/job/pipeline.h"
#include "engine/job/tensors.h"

namespace firedrill {
namespace {

constexpr std::int64_t bucket = 256 << 20;  // of the layouts that are proposed

std::vector<int> divisors(int number) {
  std::vector<int> list;
  for (int i = 1; i <= number; ++i) {
    if (number % i == 0) list.push_back(i);
  }
  return list;
}

// Every product of degrees that divide what they must, with as many stages as layers at the most.
std::vector<Layout> degree_products(const Job& job) {
  std::vector<Layout> list;
  const std::vector<int> eps = divisors(std::max(job.model.experts, 1));
  for (int pp = 1; pp <= job.model.layers; ++pp) {
    for (const int cp : divisors(job.lanes.cp)) {
      for (const int tp : divisors(job.lanes.tp)) {
        for (const int dp : divisors(job.lanes.dp)) {
          for (const int ep : eps) {
            if (dp * cp % ep == 0) list.push_back({.dp = dp, .tp = tp, .pp = pp, .cp = cp, .ep = ep});
          }
        }
      }
    }
  }
  return list;
}

double distance(const Layout& a, const Layout& b) {
  const auto apart = [](int x, int y) { return std::abs(std::log2(std::max(x, 1)) - std::log2(std::max(y, 1))); };
  return apart(a.dp, b.dp) + apart(a.tp, b.tp) + apart(a.pp, b.pp) + apart(a.cp, b.cp) + apart(a.ep, b.ep);
}

// The degrees of `degrees`, and for the rest what `wish` has as far as it is legal.
std::optional<Layout> legal_like(const Job& job, const Layout& degrees, const Layout& wish) {
  Layout layout = wish;
  layout.dp = degrees.dp;
  layout.tp = degrees.tp;
  layout.pp = degrees.pp;
  layout.cp = degrees.cp;
  layout.ep = degrees.ep;
  if (mistakes_in(layout, job).empty()) return layout;
  if (mistakes_in(degrees, job).empty()) return degrees;
  return std::nullopt;
}

// Stages that are worth proposing: few enough layouts to look at all of them.
bool is_proposed_pp(const Job& job, int pp) { return job.model.layers % pp == 0 || (pp & (pp - 1)) == 0; }

// The ways to run one product of degrees that differ in memory or speed.
std::vector<Layout> variants_of(const Job& job, Layout base) {
  std::vector<Layout> list;
  base.sequence_parallel = base.tp > 1;
  if (base.dp > 1) base.bucket_bytes = bucket;
  for (const Recompute recompute : {Recompute::segment, Recompute::layer}) {
    for (int zero = 0; zero <= (base.dp > 1 ? 3 : 0); ++zero) {
      Layout layout = base;
      layout.recompute = recompute;
      layout.zero = zero;
      layout.prefetch = zero == 3;
      list.push_back(layout);
      if (base.pp == 1) continue;
      layout.schedule = PipelineSchedule::interleaved;
      layout.virtual_stages = 2;
      list.push_back(layout);
    }
  }
  std::erase_if(list, [&job](const Layout& layout) { return !mistakes_in(layout, job).empty(); });
  return list;
}

std::string reason_of(const LayoutChoice& choice, std::int64_t gpu_memory) {
  const StepEstimate& step = choice.step;
  std::vector<std::string> exchanges;
  for (const GroupExchange& exchange : step.exchanges) {
    if (exchange.bytes <= 0) continue;
    exchanges.push_back(fmt::format(
        "{} {} {}", exchange.placement.group, rounded_bytes(exchange.bytes),
        exchange.placement.crosses() ? fmt::format("across {} nodes", exchange.placement.nodes) : "inside a node"));
  }
  return fmt::format(
      "step about {:.2f} s: compute {:.2f} s, bubble {:.0f} %, exchange {:.2f} s{}; {} of {} spare", step.seconds(),
      step.compute, 100 * step.bubble, step.exchange(), exchanges.empty() ? "" : " (" + join(exchanges, ", ") + ")",
      rounded_bytes(static_cast<double>(gpu_memory - choice.needed)), rounded_bytes(static_cast<double>(gpu_memory)));
}

}  // namespace

std::vector<Layout> nearest_layouts(const Job& job, const Layout& layout, std::size_t count) {
  std::vector<Layout> products = degree_products(job);
  std::stable_sort(products.begin(), products.end(),
                   [&](const Layout& a, const Layout& b) { return distance(a, layout) < distance(b, layout); });
  std::vector<Layout> nearest;
  for (const Layout& degrees : products) {
    if (nearest.size() == count) break;
    if (const auto legal = legal_like(job, degrees, layout)) nearest.push_back(*legal);
  }
  return nearest;
}

std::vector<std::string> mistakes_and_remedies(const Layout& layout, const Job& job) {
  std::vector<std::string> mistakes = mistakes_in(layout, job);
  if (mistakes.empty() || !mistakes_in(job).empty()) return mistakes;
  std::vector<std::string> near;
  for (const Layout& legal : nearest_layouts(job, layout)) near.push_back(to_string(legal));
  if (!near.empty()) mistakes.back() += fmt::format("; the nearest layouts that fit: {}", join(near, " or "));
  return mistakes;
}

std::vector<LayoutChoice> layouts_that_fit(const Job& job, const SearchOptions& options) {
  std::map<int, std::vector<Layout>> by_world;
  for (const Layout& degrees : degree_products(job)) {
    const int world = degrees.world_size();
    if (options.ranks ? world == *options.ranks : is_proposed_pp(job, degrees.pp)) by_world[world].push_back(degrees);
  }
  std::vector<LayoutChoice> choices;
  for (const auto& [world, products] : by_world) {
    for (const Layout& degrees : products) {
      for (const Layout& layout : variants_of(job, degrees)) {
        LayoutChoice choice{.layout = layout, .needed = memory_needed(job, layout, options.memory)};
        if (choice.needed > options.memory.gpu_memory) continue;
        choice.step = estimate_step(job, layout);
        choices.push_back(std::move(choice));
      }
    }
    if (!choices.empty()) break;  // the smallest world
  }
  std::stable_sort(choices.begin(), choices.end(), [](const LayoutChoice& a, const LayoutChoice& b) {
    if (a.step.seconds() != b.step.seconds()) return a.step.seconds() < b.step.seconds();
    return a.needed < b.needed;
  });
  // Of each product of degrees the best way to run it.
  std::vector<LayoutChoice> best;
  for (LayoutChoice& choice : choices) {
    const bool known = std::any_of(best.begin(), best.end(), [&choice](const LayoutChoice& other) {
      return distance(choice.layout, other.layout) == 0;
    });
    if (!known) best.push_back(std::move(choice));
  }
  choices = std::move(best);
  if (choices.size() > options.count) choices.resize(options.count);
  for (LayoutChoice& choice : choices) choice.reason = reason_of(choice, options.memory.gpu_memory);
  return choices;
}

std::vector<int> world_sizes_near(const Job& job, int ranks) {
  std::set<int> sizes;
  for (const Layout& degrees : degree_products(job)) sizes.insert(degrees.world_size());
  if (sizes.contains(ranks)) return {ranks};
  std::vector<int> near;
  const auto above = sizes.lower_bound(ranks);
  if (above != sizes.begin()) near.push_back(*std::prev(above));
  if (above != sizes.end()) near.push_back(*above);
  return near;
}

}  // namespace firedrill

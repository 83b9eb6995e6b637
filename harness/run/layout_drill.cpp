#include "harness/run/layout_drill.h"

#include <algorithm>
#include <numeric>

namespace firedrill {
namespace {

std::vector<int> divisors(int number) {
  std::vector<int> list;
  for (int i = 1; i <= number; ++i) {
    if (number % i == 0) list.push_back(i);
  }
  return list;
}

std::vector<Layout> products(const Job& job, int ranks_max) {
  std::vector<Layout> list;
  for (int pp = 1; pp <= job.model.layers; pp *= 2) {
    for (const int cp : divisors(job.lanes.cp)) {
      for (const int tp : divisors(job.lanes.tp)) {
        for (const int dp : divisors(job.lanes.dp)) {
          const Layout layout{.dp = dp, .tp = tp, .pp = pp, .cp = cp};
          if (layout.world_size() <= ranks_max) list.push_back(layout);
        }
      }
    }
  }
  return list;
}

// Each ep above 1 on each of these, without stages: the exchange of tokens crosses no stage.
void add_expert_degrees(const Job& job, std::vector<Layout>& list) {
  const std::vector<Layout> plain = list;
  for (Layout layout : plain) {
    if (layout.pp > 1 || layout.tp > 1) continue;
    for (layout.ep = 2; layout.ep <= layout.dp * layout.cp; ++layout.ep) {
      if (mistakes_in(layout, job).empty()) list.push_back(layout);
    }
  }
}

// The largest product of those for which `suits` holds.
template <class Suits>
const Layout* largest(const std::vector<Layout>& list, Suits suits) {
  const Layout* best = nullptr;
  for (const Layout& layout : list) {
    if (suits(layout) && (best == nullptr || layout.world_size() > best->world_size())) best = &layout;
  }
  return best;
}

// Experts over as many ranks as fit, with what else moves parameters, gradients or activations.
template <class Add>
void add_expert_variants(const Job& job, const std::vector<Layout>& plain, Add add) {
  const Layout* grid = largest(plain, [](const Layout& l) { return l.pp * l.tp == 1 && l.dp > 1; });
  const Layout* hybrid = largest(plain, [](const Layout& l) { return l.pp == 1 && l.dp > 1 && l.tp > 1; });
  const Layout* staged = largest(plain, [](const Layout& l) { return l.pp == 2 && l.dp > 1; });
  for (const Layout* base : {grid, hybrid, staged}) {
    for (const int zero : {0, 1, 2, 3}) {
      for (const int share : {1, 2}) {  // experts over the whole grid, or over half of it twice
        add(base, [&](Layout& l) {
          l.zero = zero;
          l.ep = std::gcd(job.model.experts, l.dp * l.cp / share);
        });
      }
    }
  }
  add(hybrid, [](Layout& l) {
    l.ep = 2;
    l.sequence_parallel = true;
    l.recompute = Recompute::layer;
  });
  add(grid, [](Layout& l) {
    l.ep = 2;
    l.zero = 3;
    l.prefetch = true;
    l.bucket_bytes = 4096;
  });
}

}  // namespace

std::vector<Layout> drill_layouts(const Job& job, int ranks_max) {
  std::vector<Layout> list = products(job, ranks_max);
  const std::vector<Layout> plain = list;
  if (job.model.experts > 0) add_expert_degrees(job, list);
  const auto add = [&](const Layout* base, const auto& change) {
    if (base == nullptr) return;
    Layout layout = *base;
    change(layout);
    const bool known = std::find(list.begin(), list.end(), layout) != list.end();
    if (!known && mistakes_in(layout, job).empty()) list.push_back(layout);
  };
  const Layout* data = largest(plain, [](const Layout& l) { return l.dp > 1 && l.tp * l.pp * l.cp == 1; });
  const Layout* hybrid = largest(plain, [](const Layout& l) { return l.dp > 1 && l.tp * l.cp > 1; });
  const Layout* tensor = largest(plain, [](const Layout& l) { return l.tp > 1; });
  const Layout* staged = largest(plain, [](const Layout& l) { return l.pp == 2; });
  for (const int zero : {1, 2, 3}) {
    for (const Layout* base : {data, hybrid, staged}) add(base, [zero](Layout& l) { l.zero = zero; });
  }
  add(tensor, [](Layout& l) { l.sequence_parallel = true; });
  add(hybrid, [](Layout& l) { l.sequence_parallel = true; });
  add(staged, [](Layout& l) { l.schedule = PipelineSchedule::gpipe; });
  add(staged, [](Layout& l) {
    l.schedule = PipelineSchedule::interleaved;
    l.virtual_stages = 2;
  });
  add(staged, [](Layout& l) { l.recompute = Recompute::layer; });
  add(data, [](Layout& l) { l.bucket_bytes = 4096; });
  add(hybrid, [](Layout& l) {
    l.zero = 3;
    l.prefetch = true;
    l.sequence_parallel = true;
    l.recompute = Recompute::layer;
  });
  if (job.model.experts > 0) add_expert_variants(job, plain, add);
  return list;
}

}  // namespace firedrill

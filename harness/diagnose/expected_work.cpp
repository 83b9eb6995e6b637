#include "engine/job/pipeline.h"
#include "engine/job/tensors.h"
#include "harness/diagnose/causes.h"

namespace firedrill {
namespace {

// Of one piece of each kind, forward and backward.
struct Work {
  double embed = 0;
  double layer = 0;
  double head = 0;
};

Work simulated(const Plan& plan) {
  const Cluster& cluster = plan.job.cluster;
  const auto time = [](std::chrono::nanoseconds own, std::chrono::nanoseconds any) {
    return static_cast<double>((own.count() < 0 ? any : own).count());
  };
  const auto forward = [&](const SegmentTime& own) { return time(own.forward, cluster.forward); };
  const auto both = [&](const SegmentTime& own) { return forward(own) + time(own.backward, cluster.backward); };
  const int experts = plan.job.model.experts;
  const double mlp = experts > 0 ? experts * both(cluster.expert) : both(cluster.mlp);
  const double again = plan.layout.recompute == Recompute::layer ? forward(cluster.attention) : 0;
  return {.embed = both(cluster.embed), .layer = both(cluster.attention) + again + mlp, .head = both(cluster.head)};
}

// Matrices that a token is multiplied with, and its scores with half of the sequence; looking a token up is nothing.
Work multiplied(const Plan& plan) {
  const ModelSpec& model = plan.job.model;
  const double width = model.width;
  const double keys = width * kv_heads_of(model) / model.heads;
  const double attention = 2 * width * (width + keys) + width * model.sequence;
  const double mlp = 3 * width * model.hidden_size() * (model.experts > 0 ? model.top_k : 1);
  return {.embed = 0, .layer = attention + mlp, .head = width * model.vocabulary};
}

}  // namespace

double expected_work(const Plan& plan, int stage) {
  const Work work = plan.world == WorldKind::sim ? simulated(plan) : multiplied(plan);
  const Layout& layout = plan.layout;
  double all = stage == 0 ? work.embed : 0;
  if (stage == layout.pp - 1) all += work.head;
  for (int run = 0; run < layout.virtual_stages; ++run) {
    const int of_all = run * layout.pp + stage;
    all += work.layer * layers_of_stage(plan.job.model.layers, layout.pp * layout.virtual_stages, of_all).count();
  }
  return all;
}

}  // namespace firedrill

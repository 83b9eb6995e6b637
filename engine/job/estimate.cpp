// The estimate of a step's time; see planner.h.
#include <cmath>

#include "engine/job/pipeline.h"
#include "engine/job/planner.h"
#include "engine/job/tensors.h"

namespace firedrill {
namespace {

constexpr double fp32 = 4;  // bytes

double ring(int size) { return size > 1 ? static_cast<double>(size - 1) / size : 0; }

// What one rank computes and sends, of a stage with the mean number of layers.
class Step {
 public:
  Step(const Job& job, const Layout& layout)
      : job_(job),
        layout_(layout),
        bytes_(element_bytes(job)),
        units_(micro_batches_per_rank(layout, job)),
        layers_(static_cast<double>(job.model.layers) / layout.pp),
        rest_(mean_of(&Step::rest_of)),
        experts_(mean_of(&Step::experts_of)) {}

  double compute() const {
    const double lanes = static_cast<double>(job_.lanes.tp / layout_.tp) * (job_.lanes.cp / layout_.cp);
    const Cluster& cluster = job_.cluster;
    const Pass attention = pass_of(cluster.attention);
    Pass mlp = pass_of(job_.model.experts > 0 ? cluster.expert : cluster.mlp);
    // A rank runs its experts for every lane of the ep group: together as often as there are experts.
    if (job_.model.experts > 0) mlp = {mlp.forward * job_.model.experts, mlp.backward * job_.model.experts};
    const double again = layout_.recompute == Recompute::layer ? attention.forward : 0;  // for the input of the MLP
    return units_ * lanes * layers_ * (attention.forward + attention.backward + mlp.forward + mlp.backward + again);
  }

  double bytes_of(std::string_view group) const {
    if (group == "tp") return 4 * layers_ * units_ * 2 * ring(layout_.tp) * activation();  // two sums each way
    if (group == "cp") {  // keys gathered twice, reduced once
      return 3 * layers_ * units_ * ring(layout_.cp) * keys() + over_cp(layout_.cp, rest_, layout_.dp) +
             (layout_.ep > 1 ? 0 : over_cp(layout_.cp, experts_, layout_.dp));
    }
    if (group == "ep") return 4 * layers_ * units_ * ring(layout_.ep) * routed();
    if (group == "dp") return ring(layout_.dp) * (rest_ + (layout_.ep > 1 ? 0 : experts_)) * gradient_bytes();
    const ExpertBlock block = expert_block(layout_);
    if (group == "expert.cp") return over_cp(layout_.cp / block.cp, experts_, layout_.dp / block.dp);
    if (group == "expert.dp") return ring(layout_.dp / block.dp) * experts_ * gradient_bytes();
    if (group == "tied") return own_lanes() * static_cast<double>(size_of(PieceRole::embed, job_).lane.count) * fp32;
    if (group == "pp") return 2.0 * units_ * layout_.virtual_stages * activation();
    return 0;
  }

  // Messages of a step, each of which waits for a link.
  double messages_of(std::string_view group, int size) const {
    if (group == "tp" || group == "ep") return 4 * layers_ * units_ * (size - 1);
    if (group == "cp") return (3 * layers_ * units_ + 2) * (size - 1);
    if (group == "pp") return 2.0 * units_ * layout_.virtual_stages;
    return 2.0 * (size - 1);
  }

 private:
  struct Pass {
    double forward = 0;  // seconds
    double backward = 0;
  };
  Pass pass_of(const SegmentTime& own) const {
    const auto seconds = [](std::chrono::nanoseconds time, std::chrono::nanoseconds any) {
      return std::chrono::duration<double>(time < std::chrono::nanoseconds{0} ? any : time).count();
    };
    return {.forward = seconds(own.forward, job_.cluster.forward),
            .backward = seconds(own.backward, job_.cluster.backward)};
  }
  double tokens() const { return static_cast<double>(job_.batch.lane_micro_batch) * job_.model.sequence / layout_.cp; }
  double activation() const { return tokens() * job_.model.width * bytes_.activation; }
  double keys() const {
    const double width = 2.0 * job_.model.width / job_.model.heads * kv_heads_of(job_.model) / layout_.tp;
    return job_.batch.lane_micro_batch * job_.model.sequence * width * bytes_.activation;
  }
  double routed() const { return job_.model.capacity_factor * job_.model.top_k * activation(); }
  double own_lanes() const { return static_cast<double>(job_.lanes.tp) / layout_.tp; }
  // Elements of what the rank holds: in a stage of `layers_` layers, and its part of the ends.
  double mean_of(double (Step::*of)(PieceRole) const) const {
    const double ends = ((this->*of)(PieceRole::embed) + (this->*of)(PieceRole::head)) / layout_.pp;
    return ends + layers_ * ((this->*of)(PieceRole::attention) + (this->*of)(PieceRole::mlp));
  }
  double rest_of(PieceRole role) const {
    const PieceSize size = size_of(role, job_);
    return static_cast<double>(size.shared.count + size.router.count) +
           own_lanes() * static_cast<double>(size.lane.count);
  }
  double experts_of(PieceRole role) const {
    return own_lanes() * static_cast<double>(size_of(role, job_).expert.count) * job_.model.experts / layout_.ep;
  }
  // Gradients are added over cp ranks before the rank's dp lanes are, of which there are so many among `dp` ranks.
  double over_cp(int ranks, double elements, int dp) const {
    return 2 * ring(ranks) * elements * fp32 * job_.lanes.dp / dp;
  }
  // For each element over a dp group. Sums travel in fp32: all-reduced, or from ZeRO 2 on reduced and scattered. From
  // ZeRO 1 on the new parameters are gathered, with ZeRO 3 for each forward and each backward.
  double gradient_bytes() const {
    const double gathers = layout_.zero == 0 ? 0 : layout_.zero < 3 ? 1 : 2.0 * units_;
    return (layout_.zero >= 2 ? 1 : 2) * fp32 + gathers * bytes_.parameter;
  }

  const Job& job_;
  const Layout& layout_;
  ElementBytes bytes_;
  int units_;
  double layers_;
  double rest_;     // elements that the rank holds of all but experts
  double experts_;  // and of experts
};

}  // namespace

double StepEstimate::exchange() const {
  double sum = 0;
  for (const GroupExchange& exchange : exchanges) sum += exchange.seconds;
  return sum;
}

StepEstimate estimate_step(const Job& job, const Layout& layout) {
  const Step step(job, layout);
  StepEstimate estimate{.compute = step.compute(), .bubble = bubble_fraction(layout, job), .exchanges = {}};
  for (GroupPlacement& placement : placement_of(job, layout)) {
    if (placement.group == "world") continue;
    GroupExchange exchange{.placement = std::move(placement)};
    exchange.bytes = step.bytes_of(exchange.placement.group);
    const double latency = std::chrono::duration<double>(exchange.placement.latency).count();
    exchange.seconds = exchange.bytes / exchange.placement.bandwidth +
                       latency * step.messages_of(exchange.placement.group, exchange.placement.size);
    estimate.exchanges.push_back(std::move(exchange));
  }
  return estimate;
}

}  // namespace firedrill

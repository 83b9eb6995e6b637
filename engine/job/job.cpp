#include "engine/job/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace firedrill {
namespace {

std::string_view to_string(LastBatch policy) {
  switch (policy) {
    case LastBatch::drop: return "drop";
    case LastBatch::pad: return "pad";
    case LastBatch::keep: return "keep";
  }
  return "?";
}

// Collects mistakes: `require(condition, "text", values...)`.
class Mistakes {
 public:
  template <class... Args>
  void require(bool condition, fmt::format_string<Args...> text, Args&&... args) {
    if (!condition) found_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }
  std::vector<std::string> take() { return std::move(found_); }

 private:
  std::vector<std::string> found_;
};

void check_experts(const ModelSpec& model, Mistakes& mistakes) {
  mistakes.require(model.experts >= 0 && model.experts <= 4096, "model.experts is {}: give 0 (one MLP) to 4096",
                   model.experts);
  if (model.experts < 1 || model.experts > 4096) return;
  mistakes.require(model.top_k >= 1 && model.top_k <= model.experts,
                   "model.top_k is {} of model.experts {}: the nearest that fits is {}", model.top_k, model.experts,
                   std::clamp(model.top_k, 1, model.experts));
  mistakes.require(model.capacity_factor > 0.0 && model.capacity_factor <= 1e6,
                   "model.capacity_factor is {}: give a number in (0, 1000000]; 1 is just room for evenly spread "
                   "tokens, {} drops none",
                   model.capacity_factor, static_cast<double>(model.experts) / std::max(model.top_k, 1));
  mistakes.require(model.balance_loss >= 0.0 && model.balance_loss <= 1e6,
                   "model.balance_loss is {}: give 0 (off) or more, at most 1000000", model.balance_loss);
}

void check_model(const ModelSpec& model, Mistakes& mistakes) {
  mistakes.require(model.layers >= 1 && model.layers <= 1024, "model.layers is {}: give 1 to 1024", model.layers);
  mistakes.require(model.width >= 1 && model.width <= 65536, "model.width is {}: give 1 to 65536", model.width);
  mistakes.require(model.heads >= 1 && model.width % std::max(model.heads, 1) == 0,
                   "model.heads is {} and does not divide model.width {}: choose a divisor", model.heads, model.width);
  mistakes.require(model.hidden >= 0, "model.hidden is {}: give a positive number, or leave it out", model.hidden);
  mistakes.require(model.sequence >= 1 && model.sequence <= 1 << 20, "model.sequence is {}: give 1 to 1048576",
                   model.sequence);
  mistakes.require(model.vocabulary >= 2 && model.vocabulary <= 1 << 24, "model.vocabulary is {}: give 2 to 16777216",
                   model.vocabulary);
  mistakes.require(model.kv_heads >= 0 && (model.kv_heads == 0 || model.heads % model.kv_heads == 0),
                   "model.kv_heads is {} and does not divide model.heads {}: choose a divisor", model.kv_heads,
                   model.heads);
  check_experts(model, mistakes);
  mistakes.require(model.dropout >= 0.0 && model.dropout < 1.0, "model.dropout is {}: give a number in [0, 1)",
                   model.dropout);
}

bool is_power_of_two(double x) {
  int exponent = 0;
  return std::isfinite(x) && std::frexp(x, &exponent) == 0.5;
}

// A scale that is no power of two would round every gradient of 16 bits once more.
void check_precision(const PrecisionSpec& precision, Mistakes& mistakes) {
  const ScalerSpec& s = precision.scaler;
  mistakes.require(s.initial_scale > 0.0, "precision.scaler.initial_scale is {}: give a positive number",
                   s.initial_scale);
  mistakes.require(s.growth > 1.0, "precision.scaler.growth is {}: give a number above 1", s.growth);
  mistakes.require(s.backoff > 0.0 && s.backoff < 1.0, "precision.scaler.backoff is {}: give a number in (0, 1)",
                   s.backoff);
  mistakes.require(s.growth_interval >= 1, "precision.scaler.growth_interval is {}: give 1 or more", s.growth_interval);
  if (precision.parameters == Precision::fp32 || !s.dynamic) return;
  const auto power_of_two = [&](std::string_view name, double value) {
    mistakes.require(is_power_of_two(value),
                     "precision.scaler.{} is {}: with {} parameters give a power of two, so that scaling is exact",
                     name, value, to_string(precision.parameters));
  };
  power_of_two("initial_scale", s.initial_scale);
  power_of_two("growth", s.growth);
  power_of_two("backoff", s.backoff);
}

void check_training(const Job& job, Mistakes& mistakes) {
  const OptimizerSpec& o = job.optimizer;
  mistakes.require(o.lr > 0.0 && o.lr <= 10.0, "optimizer.lr is {}: give a number in (0, 10]", o.lr);
  mistakes.require(o.warmup_steps >= 0, "optimizer.warmup_steps is {}: give 0 or more", o.warmup_steps);
  mistakes.require(o.weight_decay >= 0.0, "optimizer.weight_decay is {}: give 0 or more", o.weight_decay);
  mistakes.require(o.clip >= 0.0, "optimizer.clip is {}: give 0 (off) or more", o.clip);
  mistakes.require(o.beta1 >= 0.0 && o.beta1 < 1.0, "optimizer.beta1 is {}: give a number in [0, 1)", o.beta1);
  mistakes.require(o.beta2 >= 0.0 && o.beta2 < 1.0, "optimizer.beta2 is {}: give a number in [0, 1)", o.beta2);
  mistakes.require(o.epsilon > 0.0, "optimizer.epsilon is {}: give a positive number", o.epsilon);
  mistakes.require(o.lr_min_ratio >= 0.0 && o.lr_min_ratio <= 1.0,
                   "optimizer.lr_min_ratio is {}: give a number in [0, 1]", o.lr_min_ratio);
  check_precision(job.precision, mistakes);
  mistakes.require(job.batch.lane_micro_batch >= 1 && job.batch.lane_micro_batch <= 65536,
                   "batch.lane_micro_batch is {}: give 1 to 65536", job.batch.lane_micro_batch);
  mistakes.require(job.batch.accumulation >= 1 && job.batch.accumulation <= 65536,
                   "batch.accumulation is {}: give 1 to 65536", job.batch.accumulation);
  mistakes.require(job.data.held_out >= 0.0 && job.data.held_out <= 0.5,
                   "data.held_out is {}: give a share in [0, 0.5]", job.data.held_out);
}

// Every tp lane has the same number of heads, hidden units and words; every (cp, tp) chunk the same number of tokens.
void check_lanes(const Job& job, Mistakes& mistakes) {
  const ModelSpec& model = job.model;
  const int tp = job.lanes.tp;
  const int cp = job.lanes.cp;
  mistakes.require(tp >= 1 && tp <= 4096, "lanes.tp is {}: give 1 to 4096", tp);
  mistakes.require(cp >= 1 && cp <= 4096, "lanes.cp is {}: give 1 to 4096", cp);
  if (tp < 1 || tp > 4096 || cp < 1 || cp > 4096) return;
  const auto divides = [&](int whole, std::string_view name) {
    mistakes.require(whole % tp == 0, "lanes.tp is {} and does not divide {} {}: choose a divisor", tp, name, whole);
  };
  divides(model.heads, "model.heads");
  if (model.kv_heads > 0) divides(model.kv_heads, "model.kv_heads");
  divides(model.hidden_size(), "model.hidden");
  divides(model.vocabulary, "model.vocabulary");
  const int pairs = cp > 1 ? 2 * cp : 1;
  mistakes.require(
      model.sequence % pairs == 0 && model.sequence / cp % tp == 0,
      "lanes.cp is {} and lanes.tp is {}: model.sequence {} is not divided into {} chunks of one size, nor "
      "each cp lane into {}; a multiple of {} is",
      cp, tp, model.sequence, pairs, tp, pairs * tp);
}

}  // namespace

std::string_view to_string(Precision precision) {
  switch (precision) {
    case Precision::fp32: return "fp32";
    case Precision::bf16: return "bf16";
    case Precision::fp16: return "fp16";
  }
  return "?";
}

std::vector<JobField> bit_fields(const Job& job) {
  std::vector<JobField> fields;
  const auto add = [&fields](std::string name, const auto& value) {
    fields.push_back({.name = std::move(name), .value = fmt::format("{}", value)});
  };
  add("model.layers", job.model.layers);
  add("model.width", job.model.width);
  add("model.heads", job.model.heads);
  add("model.hidden", job.model.hidden_size());
  add("model.sequence", job.model.sequence);
  add("model.vocabulary", job.model.vocabulary);
  add("model.dropout", job.model.dropout);
  if (job.model.kv_heads != 0) add("model.kv_heads", job.model.kv_heads);
  if (job.model.tied_embedding) add("model.tied_embedding", true);
  if (job.model.experts != 0) {
    add("model.experts", job.model.experts);
    add("model.top_k", job.model.top_k);
    add("model.capacity_factor", job.model.capacity_factor);
    add("model.balance_loss", job.model.balance_loss);
  }
  add("lanes.dp", job.lanes.dp);
  add("lanes.tp", job.lanes.tp);
  add("lanes.cp", job.lanes.cp);
  add("data.shuffle", job.data.shuffle);
  add("data.last_batch", to_string(job.data.last_batch));
  add("data.held_out", job.data.held_out);
  add("batch.lane_micro_batch", job.batch.lane_micro_batch);
  add("batch.accumulation", job.batch.accumulation);
  add("optimizer.lr", job.optimizer.lr);
  add("optimizer.warmup_steps", job.optimizer.warmup_steps);
  add("optimizer.decay", job.optimizer.decay == Decay::cosine ? "cosine" : "constant");
  add("optimizer.lr_min_ratio", job.optimizer.lr_min_ratio);
  add("optimizer.weight_decay", job.optimizer.weight_decay);
  add("optimizer.beta1", job.optimizer.beta1);
  add("optimizer.beta2", job.optimizer.beta2);
  add("optimizer.epsilon", job.optimizer.epsilon);
  add("optimizer.clip", job.optimizer.clip);
  add("precision.parameters", to_string(job.precision.parameters));
  add("precision.scaler.dynamic", job.precision.scaler.dynamic);
  add("precision.scaler.initial_scale", job.precision.scaler.initial_scale);
  add("precision.scaler.growth", job.precision.scaler.growth);
  add("precision.scaler.backoff", job.precision.scaler.backoff);
  add("precision.scaler.growth_interval", job.precision.scaler.growth_interval);
  add("numerics", job.numerics == Numerics::pinned ? "pinned" : "native");
  add("steps", job.steps);
  add("seed", job.seed);
  return fields;
}

Digest digest_of_job(const Job& job) {
  std::string text;
  for (const JobField& field : bit_fields(job)) text += fmt::format("{}={}\n", field.name, field.value);
  return digest_of(text);
}

std::vector<std::string> mistakes_in(const Job& job) {
  Mistakes mistakes;
  check_model(job.model, mistakes);
  check_training(job, mistakes);
  mistakes.require(job.lanes.dp >= 1 && job.lanes.dp <= 4096, "lanes.dp is {}: give 1 to 4096", job.lanes.dp);
  check_lanes(job, mistakes);
  // So that no count of bytes leaves 64 bits, however many bytes each number of an activation takes.
  const double numbers = 1.0 * job.batch.lane_micro_batch * job.model.sequence * job.model.width * job.model.layers *
                         job.batch.accumulation * job.lanes.dp;
  mistakes.require(numbers <= 5e16,
                   "model.width {} x model.layers {} x model.sequence {} x batch.lane_micro_batch {} x "
                   "batch.accumulation {} x lanes.dp {} is more than 5e16: give smaller ones",
                   job.model.width, job.model.layers, job.model.sequence, job.batch.lane_micro_batch,
                   job.batch.accumulation, job.lanes.dp);
  mistakes.require(job.collectives == Reduction::tree || job.device == Device::cuda,
                   "collectives is native and device is cpu: NCCL's reductions need device cuda");
  mistakes.require(job.steps >= 0 && job.steps <= 10'000'000,
                   "steps is {}: give 1 to 10000000, or 0 to let ranks meet and train nothing", job.steps);
  mistakes.require(job.checkpoint.every >= 0, "checkpoint.every is {}: give 0 (at the end only) or more",
                   job.checkpoint.every);
  mistakes.require(job.checkpoint.keep_validated >= 1, "checkpoint.keep_validated is {}: give 1 or more",
                   job.checkpoint.keep_validated);
  mistakes.require(job.cluster.ranks_per_node >= 1, "cluster.ranks_per_node is {}: give 1 or more",
                   job.cluster.ranks_per_node);
  return mistakes.take();
}

}  // namespace firedrill

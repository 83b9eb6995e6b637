#include "engine/model/transformer.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/base/rng.h"
#include "engine/model/initial.h"
#include "engine/model/kernels.h"
#include "engine/model/mixed.h"

namespace firedrill {
namespace {

struct SegmentKernels {
  Kernel forward;
  Kernel backward;
};

template <auto run, unsigned narrow>
constexpr auto whole = in_precision<run, SegmentScalars, narrow>;

constexpr SegmentKernels kernels[] = {
    {make_kernel("model.embed.forward", KernelKind::forward, whole<embed_forward, Narrowed::first>, WorkKind::embed),
     make_kernel("model.embed.backward", KernelKind::backward, whole<embed_backward, Narrowed::first>,
                 WorkKind::embed)},
    {make_kernel("model.attention.forward", KernelKind::forward, whole<attention_forward, Narrowed::first>,
                 WorkKind::attention),
     make_kernel("model.attention.backward", KernelKind::backward, whole<attention_backward, Narrowed::both>,
                 WorkKind::attention)},
    {make_kernel("model.mlp.forward", KernelKind::forward, whole<mlp_forward, Narrowed::first>, WorkKind::mlp),
     make_kernel("model.mlp.backward", KernelKind::backward, whole<mlp_backward, Narrowed::both>, WorkKind::mlp)},
    {make_kernel("model.head.forward", KernelKind::forward, whole<head_forward, Narrowed::none>, WorkKind::head),
     make_kernel("model.head.backward", KernelKind::backward, whole<head_backward, Narrowed::both>, WorkKind::head)},
};
constexpr Kernel initial = make_kernel("model.initial", KernelKind::other, initial_parameters_of);

const SegmentKernels& kernels_of(const Segment& segment) {
  FD_CHECK(segment.kind <= SegmentKind::head, "{} is run lane by lane", segment.name);
  return kernels[static_cast<std::size_t>(segment.kind)];
}

SegmentScalars dimensions_of(const ModelSpec& spec) {
  return {.sequence = static_cast<std::uint32_t>(spec.sequence),
          .width = static_cast<std::uint32_t>(spec.width),
          .heads = static_cast<std::uint32_t>(spec.heads),
          .hidden = static_cast<std::uint32_t>(spec.hidden_size()),
          .vocabulary = static_cast<std::uint32_t>(spec.vocabulary)};
}

SegmentScalars scalars_of(const ModelSpec& spec, DType dtype, const Segment& segment,
                          const std::optional<RandomCounter>& random) {
  SegmentScalars scalars = dimensions_of(spec);
  scalars.dtype = static_cast<std::uint32_t>(dtype);
  if (segment.has_dropout && random) {
    scalars.key = random->key + (segment.index + 1) * 0x9E3779B97F4A7C15ULL;
    scalars.counter = random->counter;
    scalars.drop_threshold = static_cast<std::uint32_t>(std::floor(spec.dropout * 65536.0 + 0.5));
    scalars.keep_scale_bits = std::bit_cast<std::uint32_t>(static_cast<float>(1.0 / (1.0 - spec.dropout)));
  }
  return scalars;
}

Result<SegmentGradients> gradients_from(Result<Value> pack) {
  if (!pack) return std::move(pack).error();
  return SegmentGradients{.input = (*pack)[0], .parameters = (*pack)[1]};
}

}  // namespace

Model::Model(const Job& job) : spec_(job.model), lanes_(job.lanes), dtype_(dtype_of(job.precision.parameters)) {
  add_piece(PieceKind::embed, 0);
  for (int layer = 0; layer < spec_.layers; ++layer) {
    add_piece(PieceKind::attention, static_cast<std::uint32_t>(layer));
    add_piece(spec_.experts > 0 ? PieceKind::moe : PieceKind::mlp, static_cast<std::uint32_t>(layer));
  }
  add_piece(PieceKind::head, 0);
}

void Model::add_segment(SegmentKind kind, const Piece& piece, int tp_lane, int expert) {
  const std::string name = segment_stem(kind, piece.kind, piece.layer, expert);
  Segment segment{.name = tp_lane < 0 ? name : fmt::format("{}.tp.{}", name, tp_lane),
                  .kind = kind,
                  .layer = piece.layer,
                  .index = static_cast<std::uint32_t>(segments_.size()),
                  .tp_lane = tp_lane,
                  .expert = expert};
  segment.tied = tied() && kind == SegmentKind::token_lane;
  segment.has_dropout = spec_.dropout > 0 && piece.kind != PieceKind::head;
  std::vector<std::int64_t> decay;
  for (const NamedShape& tensor : tensors_of(kind, dimensions_of(spec_), static_cast<std::uint32_t>(lanes_.tp),
                                             static_cast<std::uint32_t>(spec_.experts))) {
    const bool matrix = tensor.shape.rank() >= 2;
    if (matrix) decay.insert(decay.end(), {segment.count, segment.count + tensor.shape.count()});
    segment.tensors.push_back({.name = fmt::format("{}.{}", segment.name, tensor.name),
                               .shape = tensor.shape,
                               .offset = segment.count,
                               .decay = matrix});
    segment.count += whole_grains(tensor.shape.count());
  }
  segment.decay_ranges = Value::copy_of(std::span<const std::int64_t>(decay));
  segments_.push_back(std::move(segment));
}

void Model::add_piece(PieceKind kind, std::uint32_t layer) {
  Piece piece{.kind = kind, .layer = layer, .shared = segments_.size()};
  if (whole()) {
    constexpr SegmentKind kinds[] = {SegmentKind::embed, SegmentKind::attention, SegmentKind::mlp, SegmentKind::head};
    add_segment(kinds[static_cast<std::size_t>(kind)], piece, -1);
  } else {
    constexpr SegmentKind kinds[] = {SegmentKind::token_lane, SegmentKind::attention_lane, SegmentKind::mlp_lane,
                                     SegmentKind::head_lane};
    add_segment(kind == PieceKind::embed ? SegmentKind::position : SegmentKind::norm, piece, -1);
    if (kind == PieceKind::moe) return add_experts(piece);
    piece.lanes = segments_.size();
    if (kind == PieceKind::head && tied()) {
      piece.lanes = pieces_.front().lanes;
      pieces_.push_back(piece);
      return;
    }
    for (int lane = 0; lane < lanes_.tp; ++lane) add_segment(kinds[static_cast<std::size_t>(kind)], piece, lane);
  }
  pieces_.push_back(piece);
}

void Model::add_experts(Piece& piece) {
  piece.router = segments_.size();
  piece.experts = spec_.experts;
  add_segment(SegmentKind::router, piece, -1);
  piece.lanes = segments_.size();
  for (int expert = 0; expert < spec_.experts; ++expert) {
    for (int lane = 0; lane < lanes_.tp; ++lane) add_segment(SegmentKind::expert_lane, piece, lane, expert);
  }
  pieces_.push_back(piece);
}

std::int64_t Model::parameter_count() const {
  std::int64_t sum = 0;
  for (const Segment& segment : segments_) sum += segment.parameter_count();
  return sum;
}

Result<Value> Model::initial_parameters(Compute& compute, std::size_t segment, std::uint64_t seed) const {
  const Segment& s = segments_.at(segment);
  const auto piece = std::find_if(pieces_.rbegin(), pieces_.rend(),
                                  [segment](const Piece& candidate) { return candidate.shared <= segment; });
  const InitialScalars scalars{.dimensions = dimensions_of(spec_),
                               .seed = seed,
                               .kind = static_cast<std::uint32_t>(s.kind),
                               .layer = s.layer,
                               .layers = static_cast<std::uint32_t>(spec_.layers),
                               .piece = static_cast<std::uint32_t>(piece->kind),
                               .tp_lanes = static_cast<std::uint32_t>(lanes_.tp),
                               .tp_lane = static_cast<std::uint32_t>(std::max(s.tp_lane, 0)),
                               .experts = static_cast<std::uint32_t>(spec_.experts),
                               .expert = static_cast<std::uint32_t>(std::max(s.expert, 0))};
  return run_kernel(compute, initial, scalars, std::span<Value>());
}

Result<Value> Model::forward(Compute& compute, std::size_t segment, const Value& parameters, const Value& input,
                             const std::optional<RandomCounter>& random) const {
  const Segment& s = segments_.at(segment);
  FD_CHECK(s.kind != SegmentKind::head, "the head is run by loss()");
  Value inputs[] = {parameters, input};
  return run_kernel(compute, kernels_of(s).forward, scalars_of(spec_, dtype_, s, random), inputs);
}

Result<SegmentGradients> Model::backward(Compute& compute, std::size_t segment, const Value& parameters,
                                         const Value& input, const std::optional<RandomCounter>& random,
                                         Value output_gradient) const {
  const Segment& s = segments_.at(segment);
  FD_CHECK(s.kind != SegmentKind::head, "the head is run by loss_backward()");
  Value inputs[] = {parameters, input, std::move(output_gradient)};
  Result<Value> out = run_kernel(compute, kernels_of(s).backward, scalars_of(spec_, dtype_, s, random), inputs);
  if (s.kind != SegmentKind::embed) return gradients_from(std::move(out));
  if (!out) return std::move(out).error();
  return SegmentGradients{.input = {}, .parameters = *std::move(out)};
}

Result<Value> Model::loss(Compute& compute, const Value& parameters, const Value& input, const Targets& targets) const {
  const Segment& s = segments_.back();
  Value inputs[] = {parameters, input, targets.tokens, targets.row_mask};
  return run_kernel(compute, kernels_of(s).forward, scalars_of(spec_, dtype_, s, std::nullopt), inputs);
}

Result<SegmentGradients> Model::loss_backward(Compute& compute, const Value& parameters, const Value& input,
                                              const Targets& targets, float factor) const {
  const Segment& s = segments_.back();
  SegmentScalars scalars = scalars_of(spec_, dtype_, s, std::nullopt);
  scalars.factor_bits = std::bit_cast<std::uint32_t>(factor);
  Value inputs[] = {parameters, input, targets.tokens, targets.row_mask};
  return gradients_from(run_kernel(compute, kernels_of(s).backward, scalars, inputs));
}

}  // namespace firedrill

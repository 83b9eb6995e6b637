// Each kernel of a model that is cut into lanes against LibTorch's autograd of what that lane computes: two tp lanes,
// and three cp lanes of two chunks each, so that keys come from before, from the own chunk and from other lanes.
#include <gtest/gtest.h>

#include "engine/model/dropout.h"
#include "engine/model/lane_model.h"
#include "engine/model/numerics.h"
#include "engine/model/test_tensors.h"

namespace firedrill {
namespace {

constexpr std::int64_t rows = 3;
constexpr RandomCounter random_counter{.key = 7, .counter = 4};

Job job_of_lanes(double dropout) {
  Job job;
  job.model = {.layers = 1, .width = 36, .heads = 6, .hidden = 20, .sequence = 24, .dropout = dropout};
  job.lanes = {.dp = 1, .tp = 2, .cp = 3};
  return job;
}

class LaneGradients : public testing::Test {
 protected:
  static void SetUpTestSuite() { pin_numerics(); }

  explicit LaneGradients(double dropout = 0.0)
      : job_(job_of_lanes(dropout)), model_(job_), lanes_(job_, model_, compute_) {
    for (const Segment& segment : model_.segments()) {
      parameters_.push_back(noise(Shape{segment.count}, segment.index, 0.4F));
    }
    tokens_ = random_tokens(rows, job_.model.sequence + 1);
  }

  const Piece& piece(PieceKind kind) const {
    for (const Piece& piece : model_.pieces()) {
      if (piece.kind == kind) return piece;
    }
    throw std::runtime_error("no such piece");
  }
  std::size_t of_lane(const Piece& piece, int tp) const { return piece.lanes + static_cast<std::size_t>(tp); }

  // Tensor `i` of a segment, in a flat Value of its shape.
  std::span<const float> part(std::size_t segment, std::size_t i, const Value& flat) const {
    const TensorSpec& tensor = model_.segments()[segment].tensors[i];
    return flat.as<float>().subspan(static_cast<std::size_t>(tensor.offset), static_cast<std::size_t>(tensor.count()));
  }
  at::Tensor leaf(std::size_t segment, std::size_t i) const {
    const auto sizes = model_.segments()[segment].tensors[i].shape.sizes();
    return tensor_view(part(segment, i, parameters_[segment]), {sizes.data(), sizes.size()})
        .clone()
        .set_requires_grad(true);
  }
  void expect_gradient(std::size_t segment, std::size_t i, const Value& flat, const at::Tensor& leaf) const {
    EXPECT_LT(relative_distance(part(segment, i, flat), leaf.grad()), tolerance)
        << model_.segments()[segment].tensors[i].name;
  }

  // The places in the sequence of a cp lane's tokens, or of one (cp, tp) chunk's.
  at::Tensor places(int cp) const {
    const LaneSequence lane(job_.model.sequence, job_.lanes.cp, cp);
    std::vector<std::int64_t> list;
    for (std::int64_t t = 0; t < lane.size; ++t) list.push_back(lane.position(t));
    return at::tensor(list);
  }
  at::Tensor places(int cp, int tp) const { return places(cp).chunk(job_.lanes.tp)[static_cast<std::size_t>(tp)]; }

  at::Tensor ids(std::int64_t first) const {
    return at::from_blob(const_cast<std::byte*>(tokens_.bytes().data()), {rows, job_.model.sequence + 1}, at::kByte)
        .narrow(1, first, job_.model.sequence)
        .to(at::kLong);
  }

  // What dropout multiplies a chunk by, read off a forward of ones; ones without dropout.
  at::Tensor mask(const Piece& piece, LanePlace at, std::int64_t tokens) const {
    at::Tensor ones = at::ones({rows, tokens, job_.model.width});
    if (job_.model.dropout == 0) return ones;
    LaneScalars s;
    const auto chunk = static_cast<std::uint64_t>(at.cp * job_.lanes.tp + at.tp);
    s.key = random_counter.key + (piece.shared + 1) * 0x9E3779B97F4A7C15ULL + chunk * 0xD1B54A32D192ED03ULL;
    s.counter = random_counter.counter;
    s.drop_threshold = static_cast<std::uint32_t>(job_.model.dropout * 65536 + 0.5);
    s.keep_scale_bits = std::bit_cast<std::uint32_t>(static_cast<float>(1 / (1 - job_.model.dropout)));
    Dropout(s).apply(floats_of(ones), floats_of(ones));
    return ones;
  }

  Shape activation(std::int64_t tokens) const { return {rows, tokens, job_.model.width}; }
  std::int64_t lane_tokens() const { return job_.model.sequence / job_.lanes.cp; }
  std::int64_t chunk_tokens() const { return lane_tokens() / job_.lanes.tp; }

  void compare_positions();
  void compare_residual();

  Job job_;
  DirectCompute compute_;
  Model model_;
  LaneModel lanes_;
  std::vector<Value> parameters_;
  Value tokens_;
};

class LaneGradientsWithDropout : public LaneGradients {
 protected:
  LaneGradientsWithDropout() : LaneGradients(0.25) {}
};

TEST_F(LaneGradients, TokensOfALanesPartOfTheVocabulary) {
  const at::AutoGradMode record(true);
  const Piece& embed = piece(PieceKind::embed);
  for (int cp = 0; cp < job_.lanes.cp; ++cp) {
    for (int tp = 0; tp < job_.lanes.tp; ++tp) {
      const std::size_t segment = of_lane(embed, tp);
      const at::Tensor weight = leaf(segment, 0);
      const at::Tensor own = ids(0).index_select(1, places(cp)) - tp * weight.size(0);
      const at::Tensor there = (own >= 0).logical_and(own < weight.size(0));
      const at::Tensor out = at::embedding(weight, own.clamp(0, weight.size(0) - 1)) * there.unsqueeze(-1);
      const Value gradient = noise(activation(lane_tokens()), 51, 1.0F);
      out.backward(tensor_of(gradient));
      const LanePlace at{.cp = cp, .tp = tp};
      const Value ours = get(lanes_.tokens(at, parameters_[segment], tokens_));
      EXPECT_LT(relative_distance(ours.as<float>(), out), tolerance);
      expect_gradient(segment, 0, get(lanes_.tokens_backward(at, parameters_[segment], tokens_, gradient)), weight);
    }
  }
}

void LaneGradients::compare_positions() {
  const at::AutoGradMode record(true);
  const Piece& embed = piece(PieceKind::embed);
  for (int cp = 0; cp < job_.lanes.cp; ++cp) {
    for (int tp = 0; tp < job_.lanes.tp; ++tp) {
      const LanePlace at{.cp = cp, .tp = tp};
      const Value sum = noise(activation(chunk_tokens()), 50, 1.5F);
      const Value gradient = noise(activation(chunk_tokens()), 51, 1.0F);
      const at::Tensor x = tensor_of(sum).set_requires_grad(true);
      const at::Tensor weight = leaf(embed.shared, 0);
      const at::Tensor out = (x + weight.index_select(0, places(cp, tp))) * mask(embed, at, chunk_tokens());
      out.backward(tensor_of(gradient));
      const Value& parameters = parameters_[embed.shared];
      const Value ours = get(lanes_.positions(at, embed, parameters, sum, random_counter));
      EXPECT_LT(relative_distance(ours.as<float>(), out), tolerance);
      const Value pack = get(lanes_.positions_backward(at, embed, parameters, gradient, random_counter));
      EXPECT_LT(relative_distance(pack[0].as<float>(), x.grad()), tolerance);
      expect_gradient(embed.shared, 0, pack[1], weight);
    }
  }
}

TEST_F(LaneGradients, PositionsOfAChunk) { compare_positions(); }
TEST_F(LaneGradientsWithDropout, PositionsOfAChunkUnderTheSameMask) { compare_positions(); }

TEST_F(LaneGradients, NormOfAChunkWithTheGradientOfTheResidual) {
  const at::AutoGradMode record(true);
  const std::size_t segment = piece(PieceKind::mlp).shared;
  const Value input = noise(activation(chunk_tokens()), 50, 1.5F);
  const Value gradient = noise(activation(chunk_tokens()), 51, 1.0F);
  const Value residual = noise(activation(chunk_tokens()), 52, 1.0F);
  const at::Tensor x = tensor_of(input).set_requires_grad(true);
  const at::Tensor weight = leaf(segment, 0);
  const at::Tensor bias = leaf(segment, 1);
  const at::Tensor out = at::layer_norm(x, {job_.model.width}, weight, bias, 1e-5);
  at::Tensor(out * tensor_of(gradient) + x * tensor_of(residual)).sum().backward();
  const Value ours = get(lanes_.norm(parameters_[segment], input));
  EXPECT_LT(relative_distance(ours.as<float>(), out), tolerance);
  const Value pack = get(lanes_.norm_backward(parameters_[segment], input, gradient, residual));
  EXPECT_LT(relative_distance(pack[0].as<float>(), x.grad()), tolerance);
  expect_gradient(segment, 0, pack[1], weight);
  expect_gradient(segment, 1, pack[1], bias);
}

void LaneGradients::compare_residual() {
  const at::AutoGradMode record(true);
  const Piece& mlp = piece(PieceKind::mlp);
  const LanePlace at{.cp = 2, .tp = 1};
  const Value input = noise(activation(chunk_tokens()), 50, 1.5F);
  const Value sum = noise(activation(chunk_tokens()), 53, 1.5F);
  const Value gradient = noise(activation(chunk_tokens()), 51, 1.0F);
  const at::Tensor partial = tensor_of(sum).set_requires_grad(true);
  const at::Tensor out = tensor_of(input) + partial * mask(mlp, at, chunk_tokens());
  out.backward(tensor_of(gradient));
  const Value ours = get(lanes_.residual(at, mlp, input, sum, random_counter));
  EXPECT_LT(relative_distance(ours.as<float>(), out), tolerance);
  const Value d_sum = get(lanes_.residual_backward(at, mlp, gradient, random_counter));
  EXPECT_LT(relative_distance(d_sum.as<float>(), partial.grad()), tolerance);
}

TEST_F(LaneGradients, ResidualOfAChunk) { compare_residual(); }
TEST_F(LaneGradientsWithDropout, ResidualOfAChunkUnderTheSameMask) { compare_residual(); }

TEST_F(LaneGradients, HeadsOfALaneOverTheChunksOfAllContextLanes) {
  const at::AutoGradMode record(true);
  const std::size_t segment = of_lane(piece(PieceKind::attention), 1);
  const Value& parameters = parameters_[segment];
  const std::int64_t heads = job_.model.heads / job_.lanes.tp;
  const at::Tensor x = tensor_of(noise(activation(job_.model.sequence), 50, 1.5F)).set_requires_grad(true);
  const at::Tensor d_out = tensor_of(noise(activation(job_.model.sequence), 51, 1.0F));
  const at::Tensor qkv_weight = leaf(segment, 0);
  const at::Tensor out_weight = leaf(segment, 1);
  const at::Tensor qkv = at::linear(x, qkv_weight)
                             .view({rows, job_.model.sequence, 3, heads, job_.model.width / job_.model.heads})
                             .permute({2, 0, 3, 1, 4});
  const at::Tensor attended = at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], {}, 0.0, true);
  const at::Tensor out = at::linear(attended.transpose(1, 2).reshape({rows, job_.model.sequence, -1}), out_weight);
  out.backward(d_out);

  const auto of_lane_tokens = [this](const at::Tensor& whole, int cp) {
    const at::Tensor own = whole.detach().index_select(1, places(cp)).contiguous();
    return Value::copy_of(DType::f32, activation(lane_tokens()), std::as_bytes(std::span<const float>(floats_of(own))));
  };
  std::vector<Value> q;
  std::vector<Value> kv;
  for (int cp = 0; cp < job_.lanes.cp; ++cp) {
    const Value pack = get(lanes_.qkv({.cp = cp, .tp = 1}, parameters, of_lane_tokens(x, cp)));
    q.push_back(pack[0]);
    kv.push_back(pack[1]);
  }
  const Value all_kv = Value::pack(kv);
  std::vector<at::Tensor> d_kv;  // sums over the lanes of queries
  std::vector<Value> dq;
  std::vector<Value> d_parameters;
  for (int cp = 0; cp < job_.lanes.cp; ++cp) {
    const LanePlace at{.cp = cp, .tp = 1};
    const Value ours = get(lanes_.attend(at, parameters, q[static_cast<std::size_t>(cp)], all_kv));
    EXPECT_LT(relative_distance(ours.as<float>(), out.index_select(1, places(cp))), tolerance) << "cp lane " << cp;
    const Value pack =
        get(lanes_.attend_backward(at, parameters, q[static_cast<std::size_t>(cp)], all_kv, of_lane_tokens(d_out, cp)));
    dq.push_back(pack[0]);
    for (std::size_t lane = 0; lane < kv.size(); ++lane) {
      if (cp == 0) d_kv.push_back(at::zeros_like(tensor_of(pack[1][lane])));
      d_kv[lane] += tensor_of(pack[1][lane]);
    }
    d_parameters.push_back(pack[2]);
  }
  at::Tensor d_qkv_weight = at::zeros_like(qkv_weight);
  at::Tensor d_out_weight = at::zeros_like(out_weight);
  for (int cp = 0; cp < job_.lanes.cp; ++cp) {
    const auto lane = static_cast<std::size_t>(cp);
    const Value d_keys =
        Value::copy_of(DType::f32, kv[lane].shape(), std::as_bytes(std::span<const float>(floats_of(d_kv[lane]))));
    const Value pack = get(lanes_.qkv_backward({.cp = cp, .tp = 1}, parameters, of_lane_tokens(x, cp), dq[lane], d_keys,
                                               d_parameters[lane]));
    EXPECT_LT(relative_distance(pack[0].as<float>(), x.grad().index_select(1, places(cp))), tolerance) << cp;
    d_qkv_weight += tensor_view(part(segment, 0, pack[1]), qkv_weight.sizes());
    d_out_weight += tensor_view(part(segment, 1, pack[1]), out_weight.sizes());
  }
  EXPECT_LT(relative_distance(floats_of(d_qkv_weight), qkv_weight.grad()), tolerance);
  EXPECT_LT(relative_distance(floats_of(d_out_weight), out_weight.grad()), tolerance);
}

TEST_F(LaneGradients, HiddenUnitsOfALane) {
  const at::AutoGradMode record(true);
  const std::size_t segment = of_lane(piece(PieceKind::mlp), 1);
  const Value input = noise(activation(lane_tokens()), 50, 1.5F);
  const Value gradient = noise(activation(lane_tokens()), 51, 1.0F);
  const at::Tensor x = tensor_of(input).set_requires_grad(true);
  const at::Tensor gate_up = leaf(segment, 0);
  const at::Tensor down = leaf(segment, 1);
  const auto parts = at::linear(x, gate_up).chunk(2, -1);
  const at::Tensor out = at::linear(at::silu(parts[0]) * parts[1], down);
  out.backward(tensor_of(gradient));
  EXPECT_LT(relative_distance(get(lanes_.mlp(parameters_[segment], input)).as<float>(), out), tolerance);
  const Value pack = get(lanes_.mlp_backward(parameters_[segment], input, gradient));
  EXPECT_LT(relative_distance(pack[0].as<float>(), x.grad()), tolerance);
  expect_gradient(segment, 0, pack[1], gate_up);
  expect_gradient(segment, 1, pack[1], down);
}

// The cross entropy of one cp lane's tokens over the vocabulary of both tp lanes, with a row that does not count.
TEST_F(LaneGradients, CrossEntropyOverTheVocabularyOfAllLanesWithAMaskedRow) {
  const at::AutoGradMode record(true);
  const Piece& head = piece(PieceKind::head);
  const std::size_t first = of_lane(head, 0);
  const std::size_t second = of_lane(head, 1);
  const std::uint8_t present[] = {1, 0, 1};
  const Targets targets{.tokens = tokens_,
                        .row_mask = Value::copy_of(DType::u8, Shape{rows}, std::as_bytes(std::span(present)))};
  constexpr float factor = 0.03125F;
  for (int cp = 0; cp < job_.lanes.cp; ++cp) {
    const Value input = noise(activation(lane_tokens()), 60, 2.0F);
    const at::Tensor x = tensor_of(input).set_requires_grad(true);
    const at::Tensor weights[] = {leaf(first, 0), leaf(second, 0)};
    const at::Tensor logits = at::linear(x, at::cat({weights[0], weights[1]}));
    const at::Tensor each =
        at::cross_entropy_loss(logits.view({-1, job_.model.vocabulary}), ids(1).index_select(1, places(cp)).reshape(-1),
                               {}, at::Reduction::None);
    const at::Tensor loss = (each.view({rows, -1}) * at::tensor(std::vector<float>{1, 0, 1}).view({-1, 1})).sum();
    (loss * factor).backward();

    const LanePlace at[] = {{.cp = cp, .tp = 0}, {.cp = cp, .tp = 1}};
    const at::Tensor max = at::maximum(tensor_of(get(lanes_.head_max(parameters_[first], input))),
                                       tensor_of(get(lanes_.head_max(parameters_[second], input))));
    LaneModel::HeadState state;
    state.max = Value::copy_of(std::span<const float>(floats_of(max)));
    at::Tensor sums = tensor_of(get(lanes_.head_sums(at[0], parameters_[first], input, state.max, tokens_)));
    sums += tensor_of(get(lanes_.head_sums(at[1], parameters_[second], input, state.max, tokens_)));
    state.sums =
        Value::copy_of(DType::f32, Shape{2, sums.size(1)}, std::as_bytes(std::span<const float>(floats_of(sums))));
    const Value ours = get(lanes_.head_loss(cp, state.max, state.sums, targets));
    EXPECT_NEAR(ours.as<float>()[0], loss.item<float>(), 1e-5 * loss.item<float>());
    at::Tensor dx = at::zeros_like(x);
    for (const int tp : {0, 1}) {
      const std::size_t segment = of_lane(head, tp);
      const Value pack = get(lanes_.head_backward(at[tp], parameters_[segment], input, state, targets, factor));
      dx += tensor_of(pack[0]);
      expect_gradient(segment, 0, pack[1], weights[tp]);
    }
    EXPECT_LT(relative_distance(floats_of(dx), x.grad()), tolerance);
  }
}

TEST_F(LaneGradients, ChunksOfALaneAreJoinedInOrderAndTakenAgain) {
  const Value first = noise(activation(chunk_tokens()), 50, 1.0F);
  const Value second = noise(activation(chunk_tokens()), 51, 1.0F);
  const Value whole = get(lanes_.join({first, second}));
  EXPECT_EQ(relative_distance(whole.as<float>(), at::cat({tensor_of(first), tensor_of(second)}, 1)), 0);
  EXPECT_TRUE(get(lanes_.take(whole, 0)).same_as(first));
  EXPECT_TRUE(get(lanes_.take(whole, 1)).same_as(second));
}

}  // namespace
}  // namespace firedrill

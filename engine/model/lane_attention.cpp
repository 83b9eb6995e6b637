// One tp lane of attention for the queries of one cp lane: its heads, over the keys and values of all cp lanes. Each
// chunk of queries meets each chunk of keys up to its own; the partial results (maximum, sum, output) are combined in
// the order of key chunks, wherever the keys came from.
//
// q is [chunks, rows * heads, chunk size, head size]; kv the same twice: all chunks of k, then all of v.
#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/model/arithmetic.h"
#include "engine/model/lane_kernels.h"
#include "engine/model/lane_shapes.h"
#include "engine/model/matmul.h"
#include "engine/model/mixed.h"

namespace firedrill {
namespace {

struct LaneHeads {
  LaneHeads(const LaneScalars& s, std::int64_t row_count)
      : sequence(s.sequence, s.cp_lanes, s.cp_lane),
        width(s.width),
        own_width(s.width / s.tp_lanes),
        rows(row_count),
        heads(s.heads / s.tp_lanes),
        size(s.width / s.heads),
        batch(rows * heads),
        chunk_count(batch * sequence.chunk_size * size),
        n(rows * sequence.size) {}

  // copy(offset in [rows, tokens, parts, heads, size], offset in [parts, chunks, rows, heads, chunk size, size])
  template <class Copy>
  void each(std::int64_t parts, Copy copy) const {
    for (std::int64_t part = 0; part < parts; ++part) {
      for (std::int64_t chunk = 0; chunk < sequence.chunks; ++chunk) {
        for (std::int64_t row = 0; row < rows; ++row) {
          for (std::int64_t head = 0; head < heads; ++head) {
            for (std::int64_t t = 0; t < sequence.chunk_size; ++t) {
              const std::int64_t token = row * sequence.size + chunk * sequence.chunk_size + t;
              const std::int64_t by_head = (((part * sequence.chunks + chunk) * rows + row) * heads + head);
              copy(((token * parts + part) * heads + head) * size, (by_head * sequence.chunk_size + t) * size);
            }
          }
        }
      }
    }
  }
  ConstMatrix matrix(const float* data) const { return {data, sequence.chunk_size, size, batch}; }
  Shape q_shape() const { return {sequence.chunks, batch, sequence.chunk_size, size}; }
  Shape kv_shape() const { return {2 * sequence.chunks, batch, sequence.chunk_size, size}; }

  LaneSequence sequence;
  std::int64_t width;
  std::int64_t own_width;  // of the lane's heads together
  std::int64_t rows;
  std::int64_t heads;  // of the lane
  std::int64_t size;   // of a head
  std::int64_t batch;  // rows * heads
  std::int64_t chunk_count;
  std::int64_t n;  // tokens of all rows
};

struct Attend {
  Attend(const LaneScalars& scalars, std::span<Value> inputs)
      : s(scalars),
        p(inputs[0].as<float>(), attention_lane_tensors(s.width, s.tp_lanes)),
        heads(s, inputs[1].shape()[1] / (s.heads / s.tp_lanes)),
        scale(static_cast<float>(1.0 / std::sqrt(static_cast<double>(heads.size)))),
        q(inputs[1].as<float>().data()),
        out_weight(p[1].data(), heads.width, heads.own_width),
        edge(heads.sequence.chunk_size),
        queries(heads.batch * edge),
        scores_buffer(queries * edge),
        scores{scores_buffer.data(), edge, edge, heads.batch},
        outputs(heads.sequence.chunks * heads.chunk_count),
        maxima(heads.sequence.chunks * queries),
        sums(heads.sequence.chunks * queries) {
    for (const Value& kv : inputs[2].parts()) {
      FD_CHECK(kv.shape() == heads.kv_shape(), "keys and values of another shape");
      keys_and_values.push_back(kv.as<float>().data());
    }
    for (std::int64_t chunk = 0; chunk < heads.sequence.chunks; ++chunk) attend(chunk);
  }

  const float* key(std::int64_t number) const { return kv(number, 0); }
  const float* value(std::int64_t number) const { return kv(number, heads.sequence.chunks); }
  const float* kv(std::int64_t number, std::int64_t first) const {
    return keys_and_values[static_cast<std::size_t>(heads.sequence.lane_of(number))] +
           (first + heads.sequence.slot_of(number)) * heads.chunk_count;
  }
  ConstMatrix query(std::int64_t chunk) const { return heads.matrix(q + chunk * heads.chunk_count); }

  // Query `i` of a chunk looks at so many keys of key chunk `number`.
  std::int64_t keys_seen(std::int64_t i, std::int64_t number, std::int64_t own) const {
    return number < own ? edge : i % edge + 1;
  }

  void attend(std::int64_t chunk) const {
    const std::int64_t own = heads.sequence.chunk(chunk);
    float* out = outputs.data() + chunk * heads.chunk_count;
    float* max = maxima.data() + chunk * queries;
    float* sum = sums.data() + chunk * queries;
    const Scratch part(heads.chunk_count);
    for (std::int64_t number = 0; number <= own; ++number) {
      matmul(scores, query(chunk), heads.matrix(key(number)).t());
      std::vector<float> part_max(static_cast<std::size_t>(queries));
      std::vector<float> part_sum(static_cast<std::size_t>(queries));
      for (std::int64_t i = 0; i < queries; ++i) {
        float* x = scores.data + i * edge;
        const std::int64_t seen = keys_seen(i, number, own);
        part_max[static_cast<std::size_t>(i)] = max_of(x, seen) * scale;
        part_sum[static_cast<std::size_t>(i)] = exponentiate(x, seen, scale);
        std::fill(x + seen, x + edge, 0.0F);
      }
      round_operand(s, scores.data, queries * edge);
      matmul({part.data(), edge, heads.size, heads.batch}, scores, heads.matrix(value(number)));
      for (std::int64_t i = 0; i < queries; ++i) {
        const float more_max = part_max[static_cast<std::size_t>(i)];
        const float more_sum = part_sum[static_cast<std::size_t>(i)];
        const float* more = part.data() + i * heads.size;
        float* x = out + i * heads.size;
        if (number == 0) {
          max[i] = more_max;
          sum[i] = more_sum;
          std::copy_n(more, heads.size, x);
          continue;
        }
        const float both = more_max > max[i] ? more_max : max[i];
        const float keep = portable_exp(Four{} + (max[i] - both))[0];
        const float take = portable_exp(Four{} + (more_max - both))[0];
        max[i] = both;
        sum[i] = sum[i] * keep + more_sum * take;
        for (std::int64_t d = 0; d < heads.size; ++d) x[d] = x[d] * keep + more[d] * take;
      }
    }
    for (std::int64_t i = 0; i < queries; ++i) {
      for (std::int64_t d = 0; d < heads.size; ++d) out[i * heads.size + d] /= sum[i];
    }
  }

  // The attended values as [n, own width].
  Scratch by_token() const {
    Scratch tokens(heads.n * heads.own_width);
    heads.each(1, [&](std::int64_t token, std::int64_t by_head) {
      std::copy_n(outputs.data() + by_head, heads.size, tokens.data() + token);
    });
    round_operand(s, tokens.data(), heads.n * heads.own_width);
    return tokens;
  }

  LaneScalars s;
  Slots<const float, 2> p;
  LaneHeads heads;
  float scale;
  const float* q;
  ConstMatrix out_weight;
  std::int64_t edge;     // tokens of a chunk
  std::int64_t queries;  // of a chunk, all rows and heads
  Scratch scores_buffer;
  Matrix scores;
  Scratch outputs;
  Scratch maxima;
  Scratch sums;
  std::vector<const float*> keys_and_values;  // by cp lane
};

void add(float* to, const float* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}

// Gradients of queries, keys and values, added up in the order of query chunks, then key chunks.
class AttendBackward {
 public:
  AttendBackward(const Attend& forward, const float* d_outputs, float* dq, const std::vector<float*>& d_kv)
      : f_(forward),
        d_outputs_(d_outputs),
        dq_(dq),
        d_kv_(d_kv),
        d_scores_buffer_(f_.queries * f_.edge),
        part_(f_.heads.chunk_count) {
    for (std::int64_t chunk = 0; chunk < f_.heads.sequence.chunks; ++chunk) {
      for (std::int64_t number = 0; number <= f_.heads.sequence.chunk(chunk); ++number) meet(chunk, number);
    }
  }

 private:
  void meet(std::int64_t chunk, std::int64_t number) const {
    const LaneHeads& heads = f_.heads;
    const ConstMatrix d_out = heads.matrix(d_outputs_ + chunk * heads.chunk_count);
    const Matrix d_scores{d_scores_buffer_.data(), f_.edge, f_.edge, heads.batch};
    const Matrix part{part_.data(), f_.edge, heads.size, heads.batch};
    matmul(f_.scores, f_.query(chunk), heads.matrix(f_.key(number)).t());
    weights(chunk, number);
    round_operand(f_.s, f_.scores.data, f_.queries * f_.edge);
    matmul(part, ConstMatrix(f_.scores).t(), d_out);
    add(into(number, heads.sequence.chunks), part.data, heads.chunk_count);
    matmul(d_scores, d_out, heads.matrix(f_.value(number)).t());
    scores_backward(chunk);
    round_operand(f_.s, d_scores.data, f_.queries * f_.edge);
    matmul(part, d_scores, heads.matrix(f_.key(number)));
    add(dq_ + chunk * heads.chunk_count, part.data, heads.chunk_count);
    matmul(part, ConstMatrix(d_scores).t(), f_.query(chunk));
    add(into(number, 0), part.data, heads.chunk_count);
  }
  float* into(std::int64_t number, std::int64_t first) const {
    const LaneSequence& sequence = f_.heads.sequence;
    return d_kv_[static_cast<std::size_t>(sequence.lane_of(number))] +
           (first + sequence.slot_of(number)) * f_.heads.chunk_count;
  }
  // The scores of one pair of chunks become the softmax weights over all keys.
  void weights(std::int64_t chunk, std::int64_t number) const {
    const std::int64_t own = f_.heads.sequence.chunk(chunk);
    for (std::int64_t i = 0; i < f_.queries; ++i) {
      float* x = f_.scores.data + i * f_.edge;
      const std::int64_t seen = f_.keys_seen(i, number, own);
      const float max = f_.maxima.data()[chunk * f_.queries + i];
      const float inverse = 1.0F / f_.sums.data()[chunk * f_.queries + i];
      const float scale = f_.scale;
      by_fours(seen, [=](std::int64_t k, auto count) {
        store(portable_exp(load(x + k, count) * scale - max) * inverse, x + k, count);
      });
      std::fill(x + seen, x + f_.edge, 0.0F);
    }
  }
  void scores_backward(std::int64_t chunk) const {
    const std::int64_t size = f_.heads.size;
    for (std::int64_t i = 0; i < f_.queries; ++i) {
      const float* out = f_.outputs.data() + chunk * f_.heads.chunk_count + i * size;
      const float* d_out = d_outputs_ + chunk * f_.heads.chunk_count + i * size;
      const float dot = sum_of(
          size, [=](std::int64_t d) { return load(out + d) * load(d_out + d); },
          [=](std::int64_t d) { return out[d] * d_out[d]; });
      const float* w = f_.scores.data + i * f_.edge;
      float* d = d_scores_buffer_.data() + i * f_.edge;
      for (std::int64_t k = 0; k < f_.edge; ++k) d[k] = (d[k] - dot) * w[k] * f_.scale;
    }
  }

  const Attend& f_;
  const float* d_outputs_;
  float* dq_;
  const std::vector<float*>& d_kv_;
  Scratch d_scores_buffer_;
  Scratch part_;
};

MutableValue zeros(const Shape& shape) {
  MutableValue out(DType::f32, shape);
  std::fill(out.as<float>().begin(), out.as<float>().end(), 0.0F);
  return out;
}

}  // namespace

Result<Value> qkv_lane_forward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<LaneScalars>(scalars);
  const Slots p(inputs[0].as<float>(), attention_lane_tensors(s.width, s.tp_lanes));
  const LaneHeads heads(s, inputs[1].shape()[0]);
  const Scratch by_token(heads.n * 3 * heads.own_width);
  matmul({by_token.data(), heads.n, 3 * heads.own_width}, {inputs[1].as<float>().data(), heads.n, heads.width},
         ConstMatrix(p[0].data(), 3 * heads.own_width, heads.width).t());
  MutableValue q(DType::f32, heads.q_shape());
  MutableValue kv(DType::f32, heads.kv_shape());
  const std::int64_t q_count = heads.sequence.chunks * heads.chunk_count;
  heads.each(3, [&](std::int64_t token, std::int64_t by_head) {
    float* to = by_head < q_count ? q.as<float>().data() + by_head : kv.as<float>().data() + (by_head - q_count);
    std::copy_n(by_token.data() + token, heads.size, to);
  });
  return Value::pack({std::move(q).freeze(), std::move(kv).freeze()});
}

Result<Value> qkv_lane_backward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<LaneScalars>(scalars);
  const auto tensors = attention_lane_tensors(s.width, s.tp_lanes);
  const Slots p(inputs[0].as<float>(), tensors);
  const LaneHeads heads(s, inputs[1].shape()[0]);
  const std::int64_t q_count = heads.sequence.chunks * heads.chunk_count;
  const Scratch d_by_token(heads.n * 3 * heads.own_width);
  heads.each(3, [&](std::int64_t token, std::int64_t by_head) {
    const float* from =
        by_head < q_count ? inputs[2].as<float>().data() + by_head : inputs[3].as<float>().data() + (by_head - q_count);
    std::copy_n(from, heads.size, d_by_token.data() + token);
  });
  round_operand(s, d_by_token.data(), heads.n * 3 * heads.own_width);
  const ConstMatrix d(d_by_token.data(), heads.n, 3 * heads.own_width);
  MutableValue parameters(std::move(inputs[4]));
  const Slots g(parameters.as<float>(), tensors);
  matmul({g[0].data(), 3 * heads.own_width, heads.width}, d.t(), {inputs[1].as<float>().data(), heads.n, heads.width});
  MutableValue dh(DType::f32, inputs[1].shape());
  matmul({dh.as<float>().data(), heads.n, heads.width}, d, {p[0].data(), 3 * heads.own_width, heads.width});
  return Value::pack({std::move(dh).freeze(), std::move(parameters).freeze()});
}

Result<Value> attend_lane_forward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const Attend f(scalars_as<LaneScalars>(scalars), inputs);
  MutableValue out(DType::f32, Shape{f.heads.rows, f.heads.sequence.size, f.heads.width});
  const Scratch attended = f.by_token();
  matmul({out.as<float>().data(), f.heads.n, f.heads.width}, {attended.data(), f.heads.n, f.heads.own_width},
         f.out_weight.t());
  return std::move(out).freeze();
}

Result<Value> attend_lane_backward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<LaneScalars>(scalars);
  const Attend f(s, inputs);
  const LaneHeads& heads = f.heads;
  MutableValue parameters = zeros(inputs[0].shape());
  const Slots g(parameters.as<float>(), attention_lane_tensors(s.width, s.tp_lanes));
  const ConstMatrix d(inputs[3].as<float>().data(), heads.n, heads.width);
  const Scratch attended = f.by_token();
  matmul({g[1].data(), heads.width, heads.own_width}, d.t(), {attended.data(), heads.n, heads.own_width});
  const Scratch d_attended(heads.n * heads.own_width);
  matmul({d_attended.data(), heads.n, heads.own_width}, d, f.out_weight);
  const Scratch d_outputs(heads.n * heads.own_width);
  heads.each(1, [&](std::int64_t token, std::int64_t by_head) {
    std::copy_n(d_attended.data() + token, heads.size, d_outputs.data() + by_head);
  });
  round_operand(s, d_outputs.data(), heads.n * heads.own_width);
  MutableValue dq = zeros(heads.q_shape());
  std::vector<MutableValue> d_kv;
  std::vector<float*> d_kv_data;
  for (std::size_t lane = 0; lane < inputs[2].parts().size(); ++lane) {
    d_kv.push_back(zeros(heads.kv_shape()));
    d_kv_data.push_back(d_kv.back().as<float>().data());
  }
  const AttendBackward backward(f, d_outputs.data(), dq.as<float>().data(), d_kv_data);
  std::vector<Value> frozen;
  for (MutableValue& part : d_kv) frozen.push_back(std::move(part).freeze());
  return Value::pack({std::move(dq).freeze(), Value::pack(frozen), std::move(parameters).freeze()});
}

}  // namespace firedrill

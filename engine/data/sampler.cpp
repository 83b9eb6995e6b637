#include "engine/data/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "engine/base/rng.h"

namespace firedrill {
namespace {

// One pass of the network over [0, 2^bits): each half in turn is changed by a function of the other, so every step can
// be undone and the whole is a bijection. The halves may differ by one bit.
std::uint64_t feistel(std::uint64_t value, int bits, std::uint64_t seed) {
  constexpr int steps = 6;
  int low_bits = bits / 2;
  int high_bits = bits - low_bits;
  std::uint64_t low = value & ((std::uint64_t{1} << low_bits) - 1);
  std::uint64_t high = value >> low_bits;
  for (int step = 0; step < steps; ++step) {
    const std::uint64_t key = seed + static_cast<std::uint64_t>(step) * 0xD6E8FEB86659FD93ULL;
    low ^= Rng(key ^ high).next() & ((std::uint64_t{1} << low_bits) - 1);
    std::swap(low, high);
    std::swap(low_bits, high_bits);
  }
  return high << low_bits | low;
}

Error too_short(const Job& job, std::int64_t bytes, std::int64_t needed, std::string_view what) {
  return Error{.code = Code::invalid_input,
               .message = fmt::format("corpus {} is too short: {} bytes to train on (data.held_out {}), {} bytes are "
                                      "needed for {} at model.sequence {}",
                                      job.data.corpus, bytes, job.data.held_out, needed, what, job.model.sequence),
               .hint = "give a longer data.corpus, or a smaller model.sequence, batch or data.held_out"};
}

}  // namespace

std::int64_t permuted(std::int64_t index, std::int64_t count, std::uint64_t seed) {
  FD_CHECK(index >= 0 && index < count, "element {} of {}", index, count);
  const int bits = std::bit_width(static_cast<std::uint64_t>(count - 1));
  if (bits == 0) return 0;
  // Fewer than half of the values lie outside, and a walk that starts inside comes back inside.
  std::uint64_t value = static_cast<std::uint64_t>(index);
  do {
    value = feistel(value, bits, seed);
  } while (value >= static_cast<std::uint64_t>(count));
  return static_cast<std::int64_t>(value);
}

Sampler::Sampler(const Job& job, std::int64_t samples)
    : samples_(samples),
      rows_(job.global_batch()),
      batches_(job.data.last_batch == LastBatch::drop ? samples_ / rows_ : (samples_ + rows_ - 1) / rows_),
      lanes_(job.lanes.dp),
      lane_rows_(job.batch.lane_micro_batch),
      seed_(job.seed),
      shuffle_(job.data.shuffle),
      last_batch_(job.data.last_batch) {}

Result<Sampler> Sampler::make(const Job& job, std::int64_t training_bytes) {
  const std::int64_t sequence = job.model.sequence;
  const std::int64_t samples = (training_bytes - 1) / sequence;
  if (training_bytes < 1 || samples < 1) return too_short(job, training_bytes, sequence + 1, "one sample");
  if (job.data.last_batch == LastBatch::drop && samples < job.global_batch()) {
    return too_short(job, training_bytes, job.global_batch() * sequence + 1,
                     fmt::format("one whole batch of {} samples (data.last_batch: drop)", job.global_batch()));
  }
  return Sampler(job, samples);
}

std::uint64_t Sampler::epoch_seed(std::int64_t epoch) const {
  return Stream(seed_, stream_id("data.epoch")).at(static_cast<std::uint64_t>(epoch));
}

BatchShape Sampler::batch_at(const SamplerState& state) const {
  FD_CHECK(state.cursor >= 0 && state.cursor < samples_, "cursor {} in an epoch of {} samples", state.cursor, samples_);
  const std::int64_t fresh = std::min(rows_, samples_ - state.cursor);
  const std::int64_t valid = last_batch_ == LastBatch::pad ? rows_ : fresh;
  return {.rows = rows_, .valid_rows = valid, .fresh_rows = fresh};
}

SamplerState Sampler::advance(const SamplerState& state) const {
  SamplerState next = state;
  next.cursor += batch_at(state).fresh_rows;
  const std::int64_t left = samples_ - next.cursor;
  if (left == 0 || (last_batch_ == LastBatch::drop && left < rows_)) {
    next = {.epoch = state.epoch + 1, .cursor = 0, .epoch_seed = epoch_seed(state.epoch + 1)};
  }
  return next;
}

std::int64_t Sampler::sample_at(const SamplerState& state, std::int64_t position) const {
  FD_CHECK(position >= 0 && position < rows_, "position {} of a batch of {}", position, rows_);
  if (position >= batch_at(state).valid_rows) return -1;
  // Padding begins the epoch's order again, more than once if the batch is larger than the epoch.
  const std::int64_t index = (state.cursor + position) % samples_;
  return shuffle_ ? permuted(index, samples_, state.epoch_seed) : index;
}

Value Sampler::rows_for(const SamplerState& state, int lane, int micro) const {
  FD_CHECK(lane >= 0 && lane < lanes_, "lane {} of {}", lane, lanes_);
  MutableValue rows(DType::i64, Shape{lane_rows_});
  const std::int64_t first = micro * (lanes_ * lane_rows_) + lane * lane_rows_;
  for (std::int64_t row = 0; row < lane_rows_; ++row) {
    rows.as<std::int64_t>()[static_cast<std::size_t>(row)] = sample_at(state, first + row);
  }
  return std::move(rows).freeze();
}

namespace {

Result<Value> gather(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const std::int64_t sequence = scalars_as<GatherScalars>(scalars).sequence;
  FD_CHECK(inputs.size() == 2 && sequence > 0, "{} inputs, sequence {}", inputs.size(), sequence);
  const std::span<const std::byte> text = inputs[0].bytes();
  const std::span<const std::int64_t> samples = inputs[1].as<std::int64_t>();
  const auto rows = static_cast<std::int64_t>(samples.size());
  const auto width = static_cast<std::size_t>(sequence + 1);
  const std::int64_t samples_max = (static_cast<std::int64_t>(text.size()) - 1) / sequence;
  MutableValue tokens(DType::u8, Shape{rows, sequence + 1});
  MutableValue mask(DType::u8, Shape{rows});
  for (std::size_t row = 0; row < samples.size(); ++row) {
    const std::int64_t sample = samples[row];
    std::byte* to = tokens.bytes().data() + row * width;
    mask.as<std::uint8_t>()[row] = sample < 0 ? 0 : 1;
    if (sample < 0) {
      std::fill_n(to, width, std::byte{0});
      continue;
    }
    if (sample >= samples_max) {
      return Error{.code = Code::invalid_input,
                   .message = fmt::format("sample {} of a text of {} bytes, which holds {} of length {}", sample,
                                          text.size(), samples_max, sequence),
                   .hint = "the corpus is another one than the state was made with"};
    }
    std::copy_n(text.data() + sample * sequence, width, to);
  }
  return Value::pack({std::move(tokens).freeze(), std::move(mask).freeze()});
}

}  // namespace

constinit const Kernel gather_kernel = make_kernel("data.gather", KernelKind::other, gather);

}  // namespace firedrill

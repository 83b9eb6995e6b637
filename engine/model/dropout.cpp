#include "engine/model/dropout.h"

#include <algorithm>

namespace firedrill {
namespace {

// One chunk of elements takes its bits from `blocks` blocks of Philox: element (2 * w + h) * blocks + b has half h of
// word w of block b. This order lets the compiler compute several blocks at once.
constexpr std::size_t blocks = 32;
constexpr std::size_t chunk = 8 * blocks;

struct Bits {
  std::uint32_t words[4][blocks];
};

// As philox() of engine/base/rng.h, for `blocks` counters in a row.
void draw(std::uint64_t key, std::uint64_t stream, std::uint64_t first, Bits& bits) {
  auto& [c0, c1, c2, c3] = bits.words;
  for (std::size_t b = 0; b < blocks; ++b) {
    c0[b] = static_cast<std::uint32_t>(first + b);
    c1[b] = static_cast<std::uint32_t>((first + b) >> 32);
    c2[b] = static_cast<std::uint32_t>(stream);
    c3[b] = static_cast<std::uint32_t>(stream >> 32);
  }
  std::uint32_t k0 = static_cast<std::uint32_t>(key);
  std::uint32_t k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (std::size_t b = 0; b < blocks; ++b) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c0[b];
      const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c2[b];
      c0[b] = static_cast<std::uint32_t>(p1 >> 32) ^ c1[b] ^ k0;
      c1[b] = static_cast<std::uint32_t>(p1);
      c2[b] = static_cast<std::uint32_t>(p0 >> 32) ^ c3[b] ^ k1;
      c3[b] = static_cast<std::uint32_t>(p0);
    }
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
}

// factors[i] = keep scale or 0, for one chunk.
void draw_factors(std::uint64_t key, std::uint64_t counter, std::uint64_t chunk_index, std::uint32_t threshold,
                  float scale, float* factors) {
  Bits bits;
  draw(key, counter, chunk_index * blocks, bits);
  for (std::size_t w = 0; w < 4; ++w) {
    float* low = factors + 2 * w * blocks;
    for (std::size_t b = 0; b < blocks; ++b) low[b] = (bits.words[w][b] & 0xFFFF) < threshold ? 0.0F : scale;
    float* high = low + blocks;
    for (std::size_t b = 0; b < blocks; ++b) high[b] = (bits.words[w][b] >> 16) < threshold ? 0.0F : scale;
  }
}

}  // namespace

void Dropout::apply(std::span<const float> in, std::span<float> out) const {
  if (!active()) {
    if (in.data() != out.data()) std::copy(in.begin(), in.end(), out.begin());
    return;
  }
  float factors[chunk];
  for (std::size_t begin = 0; begin < in.size(); begin += chunk) {
    draw_factors(key_, counter_, begin / chunk, threshold_, scale_, factors);
    const std::size_t n = std::min(chunk, in.size() - begin);
    for (std::size_t i = 0; i < n; ++i) out[begin + i] = in[begin + i] * factors[i];
  }
}

void Dropout::apply_and_add(std::span<const float> in, std::span<const float> residual, std::span<float> out) const {
  if (!active()) {
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = residual[i] + in[i];
    return;
  }
  float factors[chunk];
  for (std::size_t begin = 0; begin < in.size(); begin += chunk) {
    draw_factors(key_, counter_, begin / chunk, threshold_, scale_, factors);
    const std::size_t n = std::min(chunk, in.size() - begin);
    for (std::size_t i = 0; i < n; ++i) out[begin + i] = residual[begin + i] + in[begin + i] * factors[i];
  }
}

}  // namespace firedrill

// Random numbers. Only these two generators are used, and their interface speaks of integers and ratios only, so that
// no rounding of a library ever reaches a decision.
//
// Stream is counter-based: the n-th number of a stream is a pure function of (seed, stream, n), and the counter is
// state that the caller saves. Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC'11).
// Rng is sequential, for plans and the scheduler: SplitMix64 (Steele et al., OOPSLA'14).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace firedrill {

__extension__ using Wide = unsigned __int128;

// Four words of Philox4x32-10.
std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t stream, std::uint64_t counter);

class Stream {
 public:
  Stream(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}
  std::uint64_t at(std::uint64_t counter) const;
  // Uniform in [0, bound), without bias beyond 2^-64; bound > 0.
  std::uint64_t below(std::uint64_t bound, std::uint64_t counter) const;

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
};

// A stream's number from its name and indices, e.g. stream_id("dropout", lane, layer).
std::uint64_t stream_id(std::string_view purpose, std::uint64_t first = 0, std::uint64_t second = 0);

class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t bound) {  // bound > 0
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
  }
  bool chance(std::uint64_t numerator, std::uint64_t denominator) { return below(denominator) < numerator; }
  std::uint64_t state() const { return state_; }

 private:
  std::uint64_t state_;
};

}  // namespace firedrill

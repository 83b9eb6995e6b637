#include "engine/base/rng.h"

#include "engine/base/digest.h"

namespace firedrill {

std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t stream, std::uint64_t counter) {
  std::array<std::uint32_t, 4> c = {static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32),
                                    static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)};
  std::uint32_t k0 = static_cast<std::uint32_t>(key);
  std::uint32_t k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

std::uint64_t Stream::at(std::uint64_t counter) const {
  const auto words = philox(seed_, stream_, counter);
  return std::uint64_t{words[1]} << 32 | words[0];
}

std::uint64_t Stream::below(std::uint64_t bound, std::uint64_t counter) const {
  return static_cast<std::uint64_t>((static_cast<Wide>(at(counter)) * bound) >> 64);
}

std::uint64_t stream_id(std::string_view purpose, std::uint64_t first, std::uint64_t second) {
  return DigestBuilder().add(purpose).add(first).add(second).finish().low;
}

}  // namespace firedrill

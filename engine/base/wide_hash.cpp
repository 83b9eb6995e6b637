#include "engine/base/wide_hash.h"

// Nothing that other sources include may be compiled below with instructions that not every CPU has: the linker could
// take that copy of an inline function for all.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FIREDRILL_WIDE_HASH 1
#pragma GCC target("avx2")
#ifndef NDEBUG
#define XXH_NO_INLINE_HINTS 1
#endif
#include <immintrin.h>
#define XXH_VECTOR 2  // XXH_AVX2, which xxhash.h takes for granted only where all sources have it
#define XXH_INLINE_ALL
#include <xxhash.h>
static_assert(XXH_VECTOR == XXH_AVX2);
#endif

namespace firedrill {

#ifdef FIREDRILL_WIDE_HASH

bool has_wide_hash() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") != 0;
}

void wide_hash(const void* data, std::size_t size, std::uint64_t& high, std::uint64_t& low) {
  const XXH128_hash_t value = XXH3_128bits(data, size);
  high = value.high64;
  low = value.low64;
}

#else

bool has_wide_hash() { return false; }
void wide_hash(const void*, std::size_t, std::uint64_t& high, std::uint64_t& low) { high = low = 0; }

#endif

}  // namespace firedrill

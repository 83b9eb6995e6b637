// XXH3-128 with the wide registers of the CPU, where it has them: the same value as everywhere, from long inputs in
// less than half of the time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace firedrill {

bool has_wide_hash();
// Only where has_wide_hash().
void wide_hash(const void* data, std::size_t size, std::uint64_t& high, std::uint64_t& low);

}  // namespace firedrill

// Situations: rare turns of engine and protocol by name, each told from the history of a run. An exploration that never
// reaches one has not tried what follows from it.
//
// Threads: pure functions.
#pragma once

#include <bitset>
#include <span>
#include <string_view>

#include "harness/check/property.h"

namespace firedrill {

struct Situation {
  std::string_view name;
  std::string_view summary;
  bool (*happened)(const Case& run);
};
std::span<const Situation> situations();

inline constexpr std::size_t situations_max = 64;
using SituationSet = std::bitset<situations_max>;  // by index
SituationSet situations_in(const Case& run);

}  // namespace firedrill

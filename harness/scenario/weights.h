// Weights: what a scenario says of explorations, and not of its own run: how often each kind of fault is drawn.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "harness/scenario/scenario.h"

namespace firedrill {

struct KindWeight {
  FaultKind kind = FaultKind::kill;
  std::uint32_t weight = 0;  // 0: never
  bool operator==(const KindWeight&) const = default;
};

// `explore: {weights: {kill: 5}}` of a scenario that load_scenario accepts, with the same options; empty: it says
// nothing.
std::vector<KindWeight> load_weights(const std::filesystem::path& file, const LoadOptions& options = {});
std::vector<KindWeight> parse_weights(std::string_view text, const std::filesystem::path& file,
                                      const LoadOptions& options = {});

}  // namespace firedrill

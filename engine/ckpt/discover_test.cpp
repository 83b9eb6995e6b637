#include <gtest/gtest.h>

#include <optional>

#include "engine/ckpt/test_run.h"

namespace firedrill {
namespace {

class Discover : public BothCatalogs {};
INSTANTIATE_TEST_SUITE_P(Catalogs, Discover, both_catalogs, catalog_name);

TEST_P(Discover, ACandidateWithTheMarkOfAWholeOneIsNotReadAgain) {
  const auto disk = two_checkpoints(GetParam());
  TestAttempt attempt(*disk, 2);
  WholeCandidates whole;
  std::uint64_t content = 1;
  whole.mark = [&](const CheckpointId& id) {
    return std::optional(Digest{.high = content, .low = static_cast<std::uint64_t>(id.step)});
  };
  EXPECT_EQ(discover_on(*disk, attempt, &whole).chosen, id(4));
  disk->at("shards/4-1-1/model-0").back() ^= 1;
  EXPECT_EQ(discover_on(*disk, attempt, &whole).chosen, id(4));
  EXPECT_EQ(discover_on(*disk, attempt).chosen, id(2));
  content = 2;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(discover_on(*disk, attempt, &whole).chosen, id(2)) << "what was found damaged is not kept";
  }
  whole.mark = [](const CheckpointId&) { return std::nullopt; };
  EXPECT_EQ(discover_on(*disk, attempt, &whole).chosen, id(2));
}

}  // namespace
}  // namespace firedrill

// The layouts that a job is drilled with: enough, each once, and each option somewhere among them.
#include "harness/run/layout_drill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/train/shipped_jobs.h"

namespace firedrill {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::Truly;

Job hybrid() {
  for (const Job& job : shipped_jobs()) {
    if (job.name == "nano-hybrid") return job;
  }
  throw std::runtime_error("there is no nano-hybrid");
}

template <class Has>
auto contains(Has has) {
  return Contains(Truly(has));
}

TEST(LayoutDrill, HasAtLeastTwentyFourLayoutsOfTheHybridJobEachOnceAndFitting) {
  const std::vector<Layout> layouts = drill_layouts(hybrid());
  EXPECT_GE(layouts.size(), 24U);
  EXPECT_EQ(layouts.front(), Layout{}) << "the first is one rank";
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    EXPECT_THAT(mistakes_in(layouts[i], hybrid()), IsEmpty());
    EXPECT_LE(layouts[i].world_size(), 16);
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(layouts[i], layouts[j]);
  }
}

TEST(LayoutDrill, TriesEachDimensionAloneAndEachOption) {
  const std::vector<Layout> layouts = drill_layouts(hybrid());
  for (const Layout& alone : {Layout{.dp = 4}, Layout{.tp = 2}, Layout{.pp = 4}, Layout{.cp = 2}}) {
    EXPECT_THAT(layouts, Contains(alone));
  }
  for (const int zero : {1, 2, 3}) {
    EXPECT_THAT(layouts, contains([zero](const Layout& l) { return l.zero == zero && l.tp * l.cp * l.pp == 1; }));
    EXPECT_THAT(layouts, contains([zero](const Layout& l) { return l.zero == zero && l.tp * l.cp > 1; }));
  }
  EXPECT_THAT(layouts, contains([](const Layout& l) { return l.sequence_parallel && l.tp > 1; }));
  EXPECT_THAT(layouts, contains([](const Layout& l) { return l.schedule == PipelineSchedule::gpipe && l.pp > 1; }));
  EXPECT_THAT(layouts, contains([](const Layout& l) { return l.schedule == PipelineSchedule::interleaved; }));
  EXPECT_THAT(layouts, contains([](const Layout& l) { return l.recompute == Recompute::layer; }));
  EXPECT_THAT(layouts, contains([](const Layout& l) { return l.bucket_bytes > 0; }));
  EXPECT_THAT(layouts, contains([](const Layout& l) { return l.prefetch && l.zero == 3; }));
  EXPECT_THAT(layouts, contains([](const Layout& l) { return l.dp > 1 && l.tp > 1 && l.pp > 1 && l.cp > 1; }));
}

TEST(LayoutDrill, StaysWithinTheRanksItIsGiven) {
  for (const int ranks : {1, 2, 8}) {
    for (const Layout& layout : drill_layouts(hybrid(), ranks)) EXPECT_LE(layout.world_size(), ranks);
  }
  const std::vector<Layout> alone = drill_layouts(hybrid(), 1);
  EXPECT_EQ(alone.size(), 1U) << "one rank has no variants of interest";
}

}  // namespace
}  // namespace firedrill

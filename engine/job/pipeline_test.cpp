#include "engine/job/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>

namespace firedrill {
namespace {

Layout pipeline(int pp, PipelineSchedule schedule, int virtual_stages = 1) {
  return {.pp = pp, .schedule = schedule, .virtual_stages = virtual_stages};
}

struct Played {
  bool finished = false;
  int ticks = 0;  // a forward is one, a backward two
};

// Plays all ranks side by side: an action starts when the rank is free and what it needs has been computed.
Played play(const Layout& layout, int units) {
  const int stages = layout.pp * layout.virtual_stages;
  std::vector<std::vector<PipelineAction>> lists;
  for (int rank = 0; rank < layout.pp; ++rank) lists.push_back(pipeline_actions(layout, rank, units));
  std::vector<std::size_t> next(lists.size(), 0);
  std::vector<int> free_at(lists.size(), 0);
  std::map<std::tuple<bool, int, int>, int> done;  // (backward, stage, unit) -> when
  Played played;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < lists.size(); ++rank) {
      if (next[rank] == lists[rank].size()) continue;
      const PipelineAction& action = lists[rank][next[rank]];
      const int stage = action.stage * layout.pp + static_cast<int>(rank);
      int start = free_at[rank];
      const auto needs = [&](bool backward, int of_stage) {
        const auto found = done.find({backward, of_stage, action.unit});
        if (found != done.end()) start = std::max(start, found->second);
        return found != done.end();
      };
      if (action.backward && !needs(false, stage)) continue;
      if (action.backward && stage + 1 < stages && !needs(true, stage + 1)) continue;
      if (!action.backward && stage > 0 && !needs(false, stage - 1)) continue;
      free_at[rank] = start + (action.backward ? 2 : 1);
      done[{action.backward, stage, action.unit}] = free_at[rank];
      played.ticks = std::max(played.ticks, free_at[rank]);
      ++next[rank];
      moved = true;
    }
  }
  played.finished = true;
  for (std::size_t rank = 0; rank < lists.size(); ++rank) played.finished &= next[rank] == lists[rank].size();
  return played;
}

TEST(Pipeline, EveryScheduleEndsAndItsBubbleIsThatOfTheFormula) {
  for (const int pp : {1, 2, 3, 4, 8}) {
    for (const int units : {1, 2, 4, 8, 16}) {
      for (const PipelineSchedule schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b}) {
        const Played played = play(pipeline(pp, schedule), units);
        EXPECT_TRUE(played.finished) << pp << " stages, " << units << " units";
        EXPECT_EQ(played.ticks, 3 * (units + pp - 1)) << pp << " stages, " << units << " units";
      }
      if (pp < 2 || units % pp != 0) continue;
      for (const int runs : {2, 3}) {
        const Played played = play(pipeline(pp, PipelineSchedule::interleaved, runs), units);
        EXPECT_TRUE(played.finished) << pp << " x " << runs << " stages, " << units << " units";
        EXPECT_EQ(played.ticks, 3 * (units * runs + pp - 1)) << pp << " x " << runs << " stages, " << units << " units";
      }
    }
  }
}

TEST(Pipeline, BackwardsOfAStageRunInTheOrderOfUnits) {
  for (const PipelineSchedule schedule :
       {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved}) {
    const Layout layout = pipeline(4, schedule, schedule == PipelineSchedule::interleaved ? 2 : 1);
    for (int rank = 0; rank < 4; ++rank) {
      std::map<int, int> next;
      for (const PipelineAction& action : pipeline_actions(layout, rank, 8)) {
        if (!action.backward) continue;
        EXPECT_EQ(action.unit, next[action.stage]++);
      }
      for (const auto& [stage, units] : next) EXPECT_EQ(units, 8) << stage;
    }
  }
}

TEST(Pipeline, OneForwardOneBackwardKeepsNoMoreUnitsThanStagesBehindIt) {
  for (int rank = 0; rank < 4; ++rank) {
    int held = 0;
    int most = 0;
    for (const PipelineAction& action : pipeline_actions(pipeline(4, PipelineSchedule::one_f_one_b), rank, 16)) {
      held += action.backward ? -1 : 1;
      most = std::max(most, held);
    }
    EXPECT_EQ(most, 4 - rank);
  }
}

}  // namespace
}  // namespace firedrill

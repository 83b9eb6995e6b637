// Random layouts of the hybrid job: degrees, ZeRO stages, schedules, recompute, buckets, prefetch and sequence
// parallelism in any combination change no bit. Nothing is looked up: each kernel really runs.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "engine/model/numerics.h"
#include "engine/train/shipped_jobs.h"
#include "engine/train/test_layouts.h"

namespace firedrill {
namespace {

Job hybrid_job() {
  for (const Job& job : shipped_jobs()) {
    if (job.name == "nano-hybrid") return job;
  }
  throw std::runtime_error("there is no nano-hybrid");
}

bool flip() { return *rc::gen::element(false, true); }

Layout draw_layout() {
  Layout layout;
  layout.dp = *rc::gen::element(1, 2, 4);
  layout.tp = *rc::gen::element(1, 2);
  layout.pp = *rc::gen::element(1, 2, 3, 4);
  layout.cp = *rc::gen::element(1, 2);
  layout.zero = *rc::gen::element(0, 1, 2, 3);
  layout.sequence_parallel = flip();
  layout.schedule =
      *rc::gen::element(PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved);
  if (layout.schedule == PipelineSchedule::interleaved) layout.virtual_stages = 2;
  layout.recompute = *rc::gen::element(Recompute::segment, Recompute::layer);
  layout.prefetch = flip();
  layout.bucket_bytes = *rc::gen::element<std::int64_t>(0, 1, 3000, 20'000, 1'000'000);
  return layout;
}

TEST(RandomLayouts, EndWithTheBitsOfOneRank) {
  pin_numerics();
  Job job = hybrid_job();
  job.steps = 2;
  const Value text = text_to_learn();
  const CrewResult golden = train(job, {}, text);
  EXPECT_TRUE(rc::check("no layout changes a bit", [&] {
    const Layout layout = draw_layout();
    RC_PRE(layout.world_size() <= 16 && mistakes_in(layout, job).empty());
    RC_LOG() << to_string(layout);
    const CrewResult result = train(job, layout, text);
    for (std::size_t step = 0; step < golden.held.size(); ++step) {
      RC_ASSERT(difference(result.held[step], golden.held[step]) == std::string());
    }
    RC_ASSERT(result.losses == golden.losses);
  }));
}

}  // namespace
}  // namespace firedrill

#include <algorithm>
#include <chrono>

#include "engine/job/limits.h"
#include "harness/explore/swarm/swarm.h"

namespace firedrill {
namespace {

using Edit = void (*)(Job& job);

// None of them changes bits.
constexpr Edit edits[] = {
    [](Job& job) { job.checkpoint.mode = PublishMode::async; },
    [](Job& job) { job.checkpoint.keep_validated = job.checkpoint.keep_validated == 3 ? 2 : 3; },
    [](Job& job) { job.checkpoint.keep_validated = 1; },
    [](Job& job) { job.checkpoint.catalog = CatalogKind::rocksdb; },
    [](Job& job) {
      job.checkpoint.on_error = OnError::continue_training;
      job.checkpoint.failures_max = 2;
    },
    [](Job& job) { job.checkpoint.every = job.checkpoint.every == 3 ? 2 : 3; },
    [](Job& job) { job.cluster.ranks_per_node = job.cluster.ranks_per_node == 1 ? 2 : 1; },
    [](Job& job) {
      job.cluster.deadline = std::chrono::seconds(2);
      job.cluster.heartbeat = std::chrono::milliseconds(250);
    },
};

// Each of them changes bits, so all variants that do have the same ones.
constexpr Edit bit_edits[] = {
    [](Job& job) { job.batch.accumulation = job.batch.accumulation == 1 ? 2 : 1; },
    [](Job& job) { job.optimizer.clip = job.optimizer.clip > 0 ? 0.0 : 1.0; },
    [](Job& job) { job.model.dropout = job.model.dropout > 0 ? 0.0 : 0.1; },
    [](Job& job) { job.data.shuffle = !job.data.shuffle; },
};

bool can_be_run(const Job& job) { return mistakes_in(job).empty() && cannot_run(job).empty(); }

}  // namespace

std::vector<Job> job_variants(const Job& job, int count, std::uint64_t seed) {
  Rng rng(seed ^ 0x6A09E667F3BCC909ULL);
  Job other_bits = job;
  for (const Edit edit : bit_edits) {
    if (rng.chance(1, 2)) edit(other_bits);
  }
  if (!can_be_run(other_bits)) other_bits = job;
  std::vector<Job> variants = {job};
  while (std::ssize(variants) < count) {
    Job variant = std::ssize(variants) % 4 == 3 ? other_bits : job;
    const auto first = static_cast<std::size_t>(rng.below(std::size(edits)));
    edits[first](variant);
    for (const Edit edit : edits) {
      if (rng.chance(1, 6)) edit(variant);
    }
    variants.push_back(can_be_run(variant) ? variant : job);
  }
  return variants;
}

}  // namespace firedrill

#include "harness/run/random_kills.h"

#include <array>

#include "engine/base/rng.h"

namespace firedrill {
namespace {

struct PhaseShare {
  Phase phase;
  std::uint64_t weight;
  std::uint64_t calls;  // about as many seam calls as a rank makes in it
};
constexpr std::array<PhaseShare, 12> shares = {{{Phase::input, 1, 1},
                                                {Phase::forward, 2, 4},
                                                {Phase::backward, 2, 7},
                                                {Phase::exchange, 3, 10},
                                                {Phase::optimizer, 1, 4},
                                                {Phase::save, 8, 24},
                                                {Phase::commit, 6, 12},
                                                {Phase::validate, 6, 24},
                                                {Phase::retire, 6, 24},
                                                {Phase::find, 2, 24},
                                                {Phase::restore, 2, 24},
                                                {Phase::rendezvous, 1, 12}}};

const PhaseShare& draw_phase(Rng& rng) {
  std::uint64_t total = 0;
  for (const PhaseShare& share : shares) total += share.weight;
  std::uint64_t at = rng.below(total);
  for (const PhaseShare& share : shares) {
    if (at < share.weight) return share;
    at -= share.weight;
  }
  return shares.back();
}

bool saves_in(Phase phase) {
  return phase == Phase::save || phase == Phase::commit || phase == Phase::validate || phase == Phase::retire;
}

std::int64_t draw_step(Rng& rng, const Job& job, Phase phase) {
  const int every = job.checkpoint.every > 0 ? job.checkpoint.every : job.steps;
  if (!saves_in(phase)) return 1 + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(job.steps)));
  const auto saves = static_cast<std::uint64_t>((job.steps + every - 1) / every);
  return std::min<std::int64_t>(job.steps, every * (1 + static_cast<std::int64_t>(rng.below(saves))));
}

FaultSpec draw_kill(Rng& rng, const Plan& plan, int attempt) {
  const PhaseShare& share = draw_phase(rng);
  FaultSpec fault;
  fault.kind = rng.chance(1, 4) ? FaultKind::kill_node : FaultKind::kill;
  fault.lose_unsynced_data = fault.kind == FaultKind::kill_node;
  fault.lose_unsynced_names = fault.kind == FaultKind::kill_node;
  fault.may_not_fire = true;
  fault.at.attempt = attempt;
  fault.at.rank = static_cast<int>(rng.below(static_cast<std::uint64_t>(plan.layout_of(attempt).world_size())));
  if (share.phase == Phase::commit && rng.chance(3, 4)) fault.at.rank = 0;  // the coordinator does most of it
  fault.at.phase = share.phase;
  if (share.phase != Phase::find && share.phase != Phase::restore && share.phase != Phase::rendezvous)
    fault.at.step = draw_step(rng, plan.job, share.phase);
  fault.at.nth = 1 + static_cast<int>(rng.below(share.calls));
  fault.at.when = rng.chance(1, 2) ? When::before : When::after;
  return fault;
}

}  // namespace

Plan random_kills(Plan base, std::uint64_t seed) {
  Rng rng(seed * 0x9E3779B97F4A7C15ULL + 1);
  base.seed = seed;
  base.faults.clear();
  const int kills = 1 + static_cast<int>(rng.below(3));
  for (int i = 0; i < kills; ++i) base.faults.push_back(draw_kill(rng, base, 1 + i));
  base.recovery.budget = kills;
  return base;
}

}  // namespace firedrill

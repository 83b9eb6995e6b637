#include "harness/run/random_faults.h"

#include <array>
#include <optional>
#include <span>

#include "engine/base/rng.h"
#include "harness/run/random_kills.h"

namespace firedrill {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

struct Place {
  Phase phase;
  std::uint64_t calls;  // about as many calls of a rank there as the kind can be about
};

struct Share {
  FaultKind kind;
  std::uint64_t weight;
  std::array<Place, 4> places;  // one of them is drawn; a place without calls ends the list
};

constexpr std::array<Share, 16> shares = {{
    {FaultKind::io_error, 8, {{{Phase::save, 14}, {Phase::commit, 6}, {Phase::validate, 16}, {Phase::find, 30}}}},
    {FaultKind::io_error, 2, {{{Phase::retire, 16}, {Phase::restore, 12}, {Phase::rendezvous, 8}}}},
    {FaultKind::no_space, 3, {{{Phase::save, 7}, {Phase::commit, 2}}}},
    {FaultKind::failed_sync, 5, {{{Phase::save, 5}, {Phase::commit, 2}, {Phase::validate, 2}}}},
    {FaultKind::torn_write, 1, {{{Phase::save, 3}, {Phase::commit, 1}}}},
    {FaultKind::dropped_write, 1, {{{Phase::save, 3}, {Phase::commit, 1}}}},
    {FaultKind::short_write, 1, {{{Phase::save, 3}, {Phase::commit, 1}}}},
    {FaultKind::misdirected_write, 1, {{{Phase::save, 3}}}},
    {FaultKind::bit_flip_on_write, 1, {{{Phase::save, 3}, {Phase::commit, 1}}}},
    {FaultKind::bit_flip_at_rest, 5, {{{Phase::find, 10}}}},
    {FaultKind::file_vanishes, 2, {{{Phase::find, 6}}}},
    {FaultKind::stale_listing, 2, {{{Phase::find, 5}}}},
    {FaultKind::stale_stat, 1, {{{Phase::find, 4}}}},
    {FaultKind::late_visibility, 2, {{{Phase::find, 8}, {Phase::validate, 4}}}},
    {FaultKind::slow_disk, 1, {{{Phase::save, 14}, {Phase::validate, 16}}}},
    {FaultKind::clock_skew, 4, {{{Phase::forward, 4}, {Phase::save, 5}}}},
}};

const Share& draw_share(Rng& rng) {
  std::uint64_t total = 0;
  for (const Share& share : shares) total += share.weight;
  std::uint64_t at = rng.below(total);
  for (const Share& share : shares) {
    if (at < share.weight) return share;
    at -= share.weight;
  }
  return shares.back();
}

const Place& draw_place(Rng& rng, const Share& share) {
  std::size_t count = 0;
  while (count < share.places.size() && share.places[count].calls > 0) ++count;
  return share.places[rng.below(count)];
}

bool damages_at_rest(FaultKind kind) { return info_of(kind).harm == Harm::rest_damaged; }

// A step whose save comes when another one is validated: a first one that is damaged in silence and never validated,
// since its attempt dies, leaves nothing to start from.
std::optional<std::int64_t> later_save(Rng& rng, const Job& job) {
  const int every = job.checkpoint.every;
  if (every < 1 || job.steps < 2 * every) return std::nullopt;
  return every * (2 + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(job.steps / every - 1))));
}

// Sets the options of the kind.
void draw_options(Rng& rng, FaultSpec& fault) {
  fault.lost = static_cast<Part>(rng.below(3));
  if (rng.chance(1, 3)) fault.lands_in = Landing::file;
  switch (fault.kind) {
    case FaultKind::slow_disk: fault.delay = milliseconds(1 + static_cast<std::int64_t>(rng.below(20))); break;
    case FaultKind::late_visibility: fault.looks = 1 + static_cast<int>(rng.below(3)); break;
    case FaultKind::clock_skew: (rng.chance(1, 4) ? fault.ahead : fault.behind) = hours(1); break;
    case FaultKind::file_vanishes: fault.at.path = "shards/*"; break;  // without its manifest nothing can be told
    case FaultKind::io_error:
      if (fault.at.phase == Phase::find && rng.chance(1, 2)) fault.at.path = "manifests/*";
      break;
    default: break;
  }
}

FaultSpec draw_fault(Rng& rng, const Plan& plan, int attempts) {
  const Share& share = draw_share(rng);
  const Place& place = draw_place(rng, share);
  FaultSpec fault{.kind = share.kind};
  fault.may_not_fire = true;
  fault.at.phase = place.phase;
  fault.at.attempt = 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(attempts)));
  // The first attempt finds nothing that could be read.
  if ((place.phase == Phase::find || place.phase == Phase::restore) && fault.at.attempt == 1) fault.at.attempt = 2;
  fault.at.rank =
      static_cast<int>(rng.below(static_cast<std::uint64_t>(plan.layout_of(*fault.at.attempt).world_size())));
  if (place.phase == Phase::commit && rng.chance(3, 4)) fault.at.rank = 0;
  fault.at.nth = 1 + static_cast<int>(rng.below(place.calls));
  if (info_of(fault.kind).has_after && rng.chance(1, 2)) fault.at.when = When::after;
  draw_options(rng, fault);
  return fault;
}

// The kill that ends the first attempt comes when two checkpoints are validated; nothing can be damaged before. A save
// that is published aside is done when the next one is dispatched.
bool let_two_be_validated(Rng& rng, Plan& plan) {
  const Job& job = plan.job;
  const int saves = job.checkpoint.mode == PublishMode::async ? 3 : 2;
  const std::int64_t first = saves * static_cast<std::int64_t>(job.checkpoint.every) + 1;
  if (job.checkpoint.every < 1 || job.checkpoint.keep_validated < 2 || first > job.steps) return false;
  Where& at = plan.faults.front().at;
  at.phase = Phase::forward;
  at.step = first + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(job.steps - first + 1)));
  at.nth = 1;
  return true;
}

}  // namespace

Plan random_faults(Plan base, std::uint64_t seed) {
  Plan plan = random_kills(std::move(base), seed);
  Rng rng(seed * 0xD1B54A32D192ED03ULL + 7);
  if (rng.chance(1, 4)) return plan;
  const int kills = static_cast<int>(plan.faults.size());
  const int more = 1 + static_cast<int>(rng.below(2));
  bool damaged = false;
  for (int i = 0; i < more; ++i) {
    FaultSpec fault = draw_fault(rng, plan, kills + 1);
    if (damages_at_rest(fault.kind)) {
      if (damaged || !let_two_be_validated(rng, plan)) continue;
      damaged = true;
      fault.at.attempt = 2;
    }
    const bool between_saves = fault.kind == FaultKind::clock_skew;  // or all times are wrong alike
    if (between_saves || info_of(fault.kind).harm == Harm::write_damaged) {
      fault.at.step = later_save(rng, plan.job);
      if (!fault.at.step) continue;
    }
    plan.faults.push_back(std::move(fault));
  }
  plan.recovery.budget = static_cast<int>(plan.faults.size());
  return plan;
}

}  // namespace firedrill

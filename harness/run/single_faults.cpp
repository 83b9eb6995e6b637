#include "harness/run/single_faults.h"

#include <algorithm>
#include <array>

#include "engine/base/text.h"
#include "faults/budget.h"

namespace firedrill {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds deadline{2};
constexpr milliseconds heartbeat{250};

milliseconds up_to(Rng& rng, milliseconds most) {
  return milliseconds(1 + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(most.count()))));
}

// What notices damage of this kind, and nothing that does not need to be on.
Layout covering(Rng& rng, Layout layout, const FaultSpec& fault) {
  layout.guard = rng.chance(1, 2) ? Guard::check : Guard::record;
  const Harm harm = info_of(fault.kind).harm;
  // A record is compared when an attempt has failed: of a wrong call it may come too late.
  if (harm == Harm::call && fault.kind != FaultKind::early_abort) layout.guard = Guard::check;
  if (harm != Harm::computation) return layout;
  const bool updated = fault.target == Target::parameter || fault.target == Target::moment;
  const bool flips = fault.kind == FaultKind::bit_flip || fault.kind == FaultKind::nan;
  const bool replicated = layout.dp > 1 && layout.zero == 0;
  layout.replica_check = 1 + static_cast<int>(rng.below(4));
  // In half of these the replicas are on their own.
  const bool by_replicas = flips && updated && replicated && rng.chance(1, 2);
  if (!by_replicas) layout.guard = Guard::check;
  layout.rerun = !by_replicas;
  return layout;
}

void draw_link_options(Rng& rng, const Layout& layout, FaultSpec& fault) {
  static constexpr std::array<const char*, 4> groups = {"", "dp", "world", "tp"};
  fault.every = 2 + static_cast<int>(rng.below(3));
  fault.group = groups[rng.below(groups.size())];
  if (rng.chance(1, 3)) {
    fault.group.clear();
    fault.peer = static_cast<int>(rng.below(static_cast<std::uint64_t>(layout.world_size())));
  }
  if (rng.chance(1, 2)) fault.lasts = up_to(rng, milliseconds(50));
}

// Those that decide where it can be.
FaultSpec draw_kind(Rng& rng) {
  const std::vector<FaultKind>& kinds = single_fault_kinds();
  FaultSpec fault{.kind = kinds[rng.below(kinds.size())], .at = {}};
  fault.target = static_cast<Target>(rng.below(4));
  fault.damage = static_cast<PayloadDamage>(rng.below(3));
  if (info_of(fault.kind).has_after && rng.chance(1, 2)) fault.at.when = When::after;
  return fault;
}

// The others.
void draw_options(Rng& rng, const Layout& layout, FaultSpec& fault) {
  fault.code = rng.chance(1, 2) ? 0 : 3;
  switch (fault.kind) {
    case FaultKind::slow:
      fault.times = 1 + static_cast<int>(rng.below(10));
      fault.delay = rng.chance(1, 2) ? up_to(rng, milliseconds(700)) : up_to(rng, milliseconds(1'800));
      break;
    // One that is later than the deadline is lost.
    case FaultKind::delay_message:
      fault.delay = rng.chance(1, 4) ? milliseconds(3 * deadline) : up_to(rng, milliseconds(deadline) / 2);
      break;
    case FaultKind::slow_shard: fault.delay = up_to(rng, milliseconds(1'500)); break;
    case FaultKind::slow_link:
      draw_link_options(rng, layout, fault);
      fault.delay = up_to(rng, milliseconds(20));
      break;
    case FaultKind::flaky_link:
      draw_link_options(rng, layout, fault);
      // What is lost may be all that a peer waits for, in each of hundreds of calls: no more than a slow link in all.
      fault.delay = up_to(rng, milliseconds(10)) * fault.every;
      break;
    case FaultKind::partition: fault.one_way = rng.chance(1, 2); break;
    case FaultKind::clock_skew: (rng.chance(1, 2) ? fault.ahead : fault.behind) = std::chrono::hours(1); break;
    default: break;
  }
}

// Each phase is as likely as any other, however many calls it has.
FaultPlace draw_place(Rng& rng, const std::vector<FaultPlace>& places) {
  std::array<std::vector<FaultPlace>, phase_count> by_phase;
  std::vector<std::size_t> phases;
  for (const FaultPlace& place : places) {
    auto& list = by_phase[static_cast<std::size_t>(place.phase)];
    if (list.empty()) phases.push_back(static_cast<std::size_t>(place.phase));
    list.push_back(place);
  }
  std::ranges::sort(phases);
  const auto& list = by_phase[phases[rng.below(phases.size())]];
  return list[rng.below(list.size())];
}

// False if there is none for it.
bool place_at_random(Rng& rng, const Census& census, FaultSpec& fault) {
  std::vector<FaultPlace> places = places_of(fault, census);
  std::erase_if(places, [&fault](const FaultPlace& place) { return place.rank == fault.peer; });
  if (places.empty()) return false;
  fault = placed(std::move(fault), draw_place(rng, places));
  return true;
}

}  // namespace

const std::vector<FaultKind>& single_fault_kinds() {
  static const std::vector<FaultKind> kinds = [] {
    std::vector<FaultKind> list = {FaultKind::kill, FaultKind::kill_node, FaultKind::clock_skew};
    for (const FaultKindInfo& info : fault_kinds()) {
      if (info.kind >= FaultKind::hang) list.push_back(info.kind);
    }
    return list;
  }();
  return kinds;
}

Result<SingleFaults> SingleFaults::make(Session& session, const std::filesystem::path& jobs) {
  SingleFaults faults(session);
  const auto load = [&jobs](const char* name) -> Result<Job> {
    Loaded<Job> job = load_job(jobs / (std::string(name) + ".yaml"));
    if (!job) return Error{.code = Code::invalid_input, .message = join(job.mistakes, "\n")};
    job->cluster.deadline = deadline;
    job->cluster.heartbeat = heartbeat;
    job->cluster.ranks_per_node = 2;
    return *std::move(job);
  };
  FD_TRY(Job nano, load("nano"));
  FD_TRY(const Job hybrid, load("nano-hybrid"));
  faults.add_ground(nano, {.dp = 4});
  faults.add_ground(nano, {.dp = 2});
  faults.add_ground(nano, {.dp = 4, .zero = 1});
  faults.add_ground(nano, {.dp = 4, .zero = 2, .bucket_bytes = 1});
  faults.add_ground(nano, {.dp = 4, .zero = 3});
  faults.add_ground(hybrid, {.dp = 2, .tp = 2});
  faults.add_ground(hybrid, {.dp = 2, .pp = 2});
  faults.add_ground(hybrid, {.dp = 2, .cp = 2, .bucket_bytes = 1});
  faults.add_ground(hybrid, {.tp = 2, .pp = 2, .sequence_parallel = true});
  faults.add_ground(hybrid, {.dp = 2, .tp = 2, .pp = 2});
  nano.checkpoint.mode = PublishMode::async;
  faults.add_ground(nano, {.dp = 4});
  return faults;
}

void SingleFaults::add_ground(const Job& job, const Layout& layout) {
  Plan plan;
  plan.scenario = job.name;
  plan.job = job;
  plan.run_id = run_id_of(job);
  plan.layout = layout;
  plan.recovery.budget = 2;
  grounds_.push_back(std::move(plan));
}

Result<const Census*> SingleFaults::census_of(std::size_t ground, const Layout& layout) {
  const std::string key = fmt::format("{} {}", ground, to_string(layout));
  if (const auto known = censuses_.find(key); known != censuses_.end()) return &known->second;
  Plan plan = grounds_[ground];
  plan.layout = layout;
  FD_TRY(Census census, session_.census(plan));
  return &censuses_.emplace(key, std::move(census)).first->second;
}

Result<Plan> SingleFaults::draw(std::uint64_t seed) {
  Rng rng(seed * 0x9E3779B97F4A7C15ULL + 3);
  const FaultSpec like = draw_kind(rng);
  for (int tries = 0; tries < 100; ++tries) {
    const std::size_t ground = rng.below(grounds_.size());
    Plan plan = grounds_[ground];
    plan.seed = seed;
    plan.layout = covering(rng, plan.layout, like);
    FD_TRY(const Census* const census, census_of(ground, plan.layout));
    FaultSpec fault = like;
    draw_options(rng, plan.layout, fault);
    if (place_at_random(rng, *census, fault)) {
      plan.faults = {fault};
      return plan;
    }
  }
  return Error{.code = Code::internal, .message = fmt::format("no layout has a place for {}", to_string(like.kind))};
}

Result<Plan> SingleFaults::draw_undisturbed(std::uint64_t seed) {
  Rng rng(seed * 0x9E3779B97F4A7C15ULL + 4);
  const std::size_t ground = rng.below(grounds_.size());
  Plan plan = grounds_[ground];
  plan.seed = seed;
  plan.recovery.budget = 0;
  plan.layout.guard = static_cast<Guard>(rng.below(3));
  FD_TRY(const Census* const census, census_of(ground, plan.layout));
  const auto add = [&](FaultKind kind, Duration delay, int times) {
    FaultSpec fault{.kind = kind, .at = {}};
    fault.delay = delay;
    fault.times = times;
    if (kind == FaultKind::slow_link) draw_link_options(rng, plan.layout, fault);
    FD_CHECK(place_at_random(rng, *census, fault), "no place for {}", describe(fault));
    plan.faults.push_back(std::move(fault));
  };
  for (int i = 0; i < 8; ++i) add(FaultKind::delay_message, up_to(rng, milliseconds(deadline) / 2), 1);
  for (int i = 0; i < 3; ++i) add(FaultKind::slow_link, up_to(rng, milliseconds(20)), 1);
  const int times = 1 + static_cast<int>(rng.below(8));
  // Within the bound, and with the delays of messages together as well.
  add(FaultKind::slow, up_to(rng, milliseconds(deadline) / std::max(2, times / 2)), times);
  FD_CHECK(slows_within_bound(plan.faults.back(), plan.job), "{}", describe(plan.faults.back()));
  return plan;
}

Result<SingleResult> SingleFaults::run(const Plan& plan) {
  FD_TRY(const Trial trial, session_.trial(plan));
  if (plan.faults.size() == 1) return judge_single_fault(trial, session_.history(), plan);
  return judge_undisturbed(trial, session_.history(), plan);
}

}  // namespace firedrill

#include "harness/explore/swarm/swarm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "faults/budget.h"
#include "harness/explore/swarm/options.h"
#include "harness/run/layout_drill.h"

namespace firedrill {
namespace {

constexpr int draws_max = 8;  // of a plan, until one is within its budget
constexpr int faults_max = 3;
constexpr std::size_t grounds_wanted = 64;  // job variants, layouts and what they check, one with the other

// What of a job decides which calls its ranks make, beside what its digest says.
std::string key_of(const Job& job) {
  const CheckpointSpec& saves = job.checkpoint;
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {}", job.batch.accumulation, job.optimizer.clip, job.model.dropout,
                     job.data.shuffle, saves.every, saves.keep_validated, static_cast<int>(saves.mode),
                     static_cast<int>(saves.catalog), saves.failures_max, job.cluster.ranks_per_node,
                     job.cluster.deadline.count());
}

template <class T>
const T& any_of(Rng& rng, const std::vector<T>& list) {
  return list[rng.below(list.size())];
}

// One kill in the middle: the census of the attempt behind it counts for all later ones.
Plan counted_plan(const Plan& plan, const Layout& layout) {
  Plan counted = plan;
  counted.layout = layout;
  counted.world = WorldKind::sim;
  counted.mutant.clear();
  counted.seed = 1;
  counted.recovery = {.budget = 1};
  counted.faults = {
      FaultSpec{.kind = FaultKind::kill, .at = {.rank = 0, .step = plan.job.steps / 2 + 1, .phase = Phase::backward}}};
  return counted;
}

struct Checks {
  Guard guard = Guard::off;
  int replicas = 0;
  bool rerun = false;
};

void set_checks(const Checks& checks, Layout& layout) {
  layout.guard = checks.guard;
  layout.replica_check = checks.replicas;
  layout.rerun = checks.rerun;
}

// Few choices for each job variant and layout: calls are counted, and results kept, for each choice anew.
Checks checks_of(const Job& job, const Layout& layout, std::uint64_t seed) {
  Layout plain = layout;
  set_checks({}, plain);
  Rng rng(seed ^ digest_of(key_of(job) + to_string(plain)).low);
  Checks checks;
  checks.guard = std::array{Guard::off, Guard::off, Guard::record, Guard::check}[rng.below(4)];
  if (rng.chance(1, 3)) checks.replicas = 1 + static_cast<int>(rng.below(3));
  checks.rerun = rng.chance(1, 8);
  return checks;
}

// One time in four, what no fault of the plan asks for: one of `choices`.
void draw_checks(Rng& rng, Plan& plan, std::uint64_t seed, std::uint64_t choices) {
  const bool more = rng.chance(1, 4);
  seed += rng.below(choices) * 0x9E3779B97F4A7C15ULL;
  for (Layout* layout : {&plan.layout, plan.recovery.layout ? &*plan.recovery.layout : nullptr}) {
    if (layout != nullptr) set_checks(more ? checks_of(plan.job, *layout, seed) : Checks{}, *layout);
  }
}

bool flips_a_stored_bit(FaultKind kind) {
  return kind == FaultKind::bit_flip_on_write || kind == FaultKind::bit_flip_at_rest;
}

// Two of a kind at one place may undo each other, and so may two flips of a bit that is stored in one step.
bool has_twin(const Plan& plan, const FaultSpec& fault) {
  const auto place = [](const FaultSpec& of) {
    const bool flips = flips_a_stored_bit(of.kind);
    return std::tuple(
        flips ? FaultKind::bit_flip_at_rest : of.kind, of.at.attempt, of.at.step,
        flips ? std::tuple(0, std::optional<Phase>(), 0) : std::tuple(of.at.rank, of.at.phase, of.at.nth));
  };
  return std::ranges::any_of(plan.faults,
                             [&](const FaultSpec& other) { return &other != &fault && place(other) == place(fault); });
}

// Which attempt a further fault is for: mostly the last that those before it can lead to.
int draw_attempt(Rng& rng, const Plan& plan) {
  const int last = 1 + restarts_for(plan);
  if (last == 1 || rng.chance(3, 4)) return last;
  return 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(last)));
}

// A plan that no system survives: it must end in words.
void go_beyond(Rng& rng, Plan& plan) {
  FaultSpec& last = plan.faults.back();
  // Nothing on a rank notices damage that strikes its recomputation alike, so it cannot be asked to end in words.
  const bool may_repeat = last.kind != FaultKind::bit_flip && last.kind != FaultKind::nan;
  switch (may_repeat ? rng.below(3) : 2) {
    case 0: plan.recovery.budget = std::max(0, plan.recovery.budget - 1); break;
    case 1:
      last.times = 0;
      last.at.attempt.reset();
      break;
    default:
      last.kind = FaultKind::kill;
      last.times = 0;
      last.at = {.attempt = std::nullopt, .rank = 0, .phase = Phase::commit};
      break;
  }
}

}  // namespace

Swarm::Swarm(Plan base, const SwarmOptions& options, std::shared_ptr<PlacesOfGrounds> places)
    : base_(std::move(base)),
      options_(options),
      variants_(job_variants(base_.job, options.variants_max, base_.seed)),
      weights_(weights_of(options.weights, base_.world)),
      places_(places ? std::move(places) : std::make_shared<PlacesOfGrounds>()) {
  for (const Job& job : variants_) {
    std::vector<Layout> layouts = {base_.layout};
    if (options_.other_layouts) layouts = drill_layouts(job, options_.ranks_max);
    layouts_.push_back(std::move(layouts));
    run_ids_.push_back(run_id_of(job));
  }
}

std::string Swarm::ground_of(const Plan& plan) {
  const std::string again = plan.recovery.layout ? to_string(*plan.recovery.layout) : std::string();
  return fmt::format("{} / {} / {}", key_of(plan.job), to_string(plan.layout), again);
}

std::uint64_t Swarm::choices_of_checks() const {
  std::size_t grounds = 0;
  for (const std::vector<Layout>& layouts : layouts_) grounds += layouts.size();
  return std::max<std::size_t>(1, grounds_wanted / grounds);
}

std::size_t Swarm::layout_number(const Plan& plan) const {
  Layout plain = plan.layout;
  set_checks({}, plain);
  const std::vector<Layout>& all = layouts_.front();
  const auto found = std::ranges::find(all, plain);
  return found == all.end() ? 0 : static_cast<std::size_t>(found - all.begin());
}

Swarm::Kinds Swarm::draw_kinds(Rng& rng) const {
  Kinds kinds;
  while (kinds.total == 0) {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      // A few kinds at a time meet more often than all at once, and what one kind hides another one shows.
      kinds.weights[i] = rng.chance(1, 3) ? weights_[i] << rng.below(3) : 0;
      kinds.total += kinds.weights[i];
    }
  }
  return kinds;
}

void Swarm::draw_job_and_layouts(Rng& rng, Plan& plan) const {
  const auto variant = static_cast<std::size_t>(rng.below(variants_.size()));
  plan.job = variants_[variant];
  plan.run_id = run_ids_[variant];
  if (!options_.other_layouts) return;
  const std::vector<Layout>& layouts = layouts_[variant];
  plan.layout = any_of(rng, layouts);
  plan.recovery = {};
  const std::uint64_t policy = rng.below(8);
  if (policy < 3) plan.recovery.layout = any_of(rng, layouts);
  if (policy == 3 && base_.world == WorldKind::sim) {
    plan.recovery.policy = RecoveryPolicy::spare;
    plan.recovery.spares = faults_max;
  }
  if (policy == 4) {
    const Layout& fewer = any_of(rng, layouts);
    if (fewer.world_size() < plan.layout.world_size()) {
      plan.recovery.policy = RecoveryPolicy::fewer;
      plan.recovery.layout = fewer;
    }
  }
}

Swarm::Kinds Swarm::only_kills() {
  Kinds kinds;
  kinds.weights[static_cast<std::size_t>(FaultKind::kill)] = 1;
  kinds.total = 1;
  return kinds;
}

Result<bool> Swarm::draw_place(Session& session, Rng& rng, const Plan& plan, FaultSpec& fault) {
  const Layout& layout = plan.layout_of(*fault.at.attempt);
  const auto census = [&] { return session.census(counted_plan(plan, layout)); };
  return places_->draw(fmt::format("{} {}", key_of(plan.job), to_string(layout)), census, rng, fault);
}

Status Swarm::draw_fault(Session& session, Rng& rng, const Kinds& kinds, Plan& plan) {
  std::uint64_t at = rng.below(kinds.total);
  std::size_t kind = 0;
  while (at >= kinds.weights[kind]) at -= kinds.weights[kind++];
  FaultSpec fault{.kind = static_cast<FaultKind>(kind)};
  fault.may_not_fire = true;  // another fault may end the attempt first
  fault.at.attempt = draw_attempt(rng, plan);
  draw_target(rng, fault);
  plan.faults.push_back(fault);
  cover_damage(plan);
  FD_TRY(const bool fires, draw_place(session, rng, plan, plan.faults.back()));
  if (fires && !has_twin(plan, plan.faults.back())) {
    draw_options(rng, plan, plan.faults.back());
  } else {
    plan.faults.pop_back();
  }
  return {};
}

Status Swarm::draw_faults(Session& session, Rng& rng, const Kinds& kinds, Plan& plan) {
  plan.faults.clear();
  const int count = std::array{1, 1, 2, 2, faults_max}[rng.below(5)];
  for (int i = 0; i < count; ++i) FD_TRY_VOID(draw_fault(session, rng, kinds, plan));
  plan.recovery.budget = restarts_for(plan);
  return {};
}

Result<Drawn> Swarm::draw(Session& session, std::uint64_t seed) {
  Rng rng(seed * 0xD1B54A32D192ED03ULL + 0x3C6EF372FE94F82BULL);
  const bool go_on = options_.beyond_budget && rng.chance(1, 50);
  Drawn drawn;
  for (int i = 0; i < draws_max; ++i) {
    drawn.plan = base_;
    drawn.plan.seed = rng.next();
    draw_job_and_layouts(rng, drawn.plan);
    draw_checks(rng, drawn.plan, base_.seed, choices_of_checks());
    FD_TRY_VOID(draw_faults(session, rng, i + 1 < draws_max ? draw_kinds(rng) : only_kills(), drawn.plan));
    if (!drawn.plan.faults.empty() && beyond_budget(drawn.plan).empty()) break;
  }
  if (go_on && !drawn.plan.faults.empty()) {
    go_beyond(rng, drawn.plan);
    drawn.beyond_budget = !beyond_budget(drawn.plan).empty();
  }
  return drawn;
}

Result<Drawn> Swarm::mutate(Session& session, const Plan& parent, std::uint64_t seed) {
  Rng rng(seed * 0xA0761D6478BD642FULL + 0xE7037ED1A0B428DBULL);
  for (int i = 0; i < draws_max; ++i) {
    Plan plan = adopted(rng, parent);
    FD_TRY_VOID(edit(session, rng, plan));
    plan.recovery.budget = restarts_for(plan);
    if (!plan.faults.empty() && beyond_budget(plan).empty()) return Drawn{.plan = std::move(plan)};
  }
  return draw(session, seed);
}

// A plan of another exploration may be of another variant, or have come by another path.
Plan Swarm::adopted(Rng& rng, const Plan& parent) const {
  Plan plan = parent;
  const std::string key = key_of(parent.job);
  const bool known = std::ranges::any_of(variants_, [&key](const Job& job) { return key_of(job) == key; });
  plan.job = known ? parent.job : any_of(rng, variants_);
  plan.run_id = run_id_of(plan.job);
  plan.scenario = base_.scenario;
  plan.scenario_path = base_.scenario_path;
  plan.settings = base_.settings;
  plan.mutant = base_.mutant;
  plan.world = base_.world;
  plan.corpus_digest.reset();
  return plan;
}

Status Swarm::edit(Session& session, Rng& rng, Plan& plan) {
  const std::size_t any = plan.faults.empty() ? 0 : static_cast<std::size_t>(rng.below(plan.faults.size()));
  switch (rng.below(5)) {
    case 0: plan.seed = rng.next(); return {};
    case 1:
      if (plan.faults.size() > 1) plan.faults.erase(plan.faults.begin() + static_cast<std::ptrdiff_t>(any));
      return {};
    case 2:
      if (std::ssize(plan.faults) >= faults_max)
        plan.faults.erase(plan.faults.begin() + static_cast<std::ptrdiff_t>(any));
      return draw_fault(session, rng, draw_kinds(rng), plan);
    case 3: return move_fault(session, rng, plan, any);
    default: {
      const Plan before = plan;
      draw_job_and_layouts(rng, plan);
      draw_checks(rng, plan, base_.seed, choices_of_checks());
      plan.faults.clear();
      for (const FaultSpec& fault : before.faults) {
        plan.faults.push_back(fault);
        cover_damage(plan);
        FD_TRY_VOID(move_fault(session, rng, plan, plan.faults.size() - 1));
      }
      return {};
    }
  }
}

Status Swarm::move_fault(Session& session, Rng& rng, Plan& plan, std::size_t index) {
  if (index >= plan.faults.size()) return {};
  FaultSpec& fault = plan.faults[index];
  if (!fault.at.attempt) return {};
  FaultSpec moved = fault;
  // What the options of a kind mean may hang on the place, as a peer does.
  moved = FaultSpec{.kind = fault.kind, .at = {.attempt = fault.at.attempt}, .may_not_fire = true};
  draw_target(rng, moved);
  FD_TRY(const bool fires, draw_place(session, rng, plan, moved));
  if (!fires || has_twin(plan, moved)) return {};
  draw_options(rng, plan, moved);
  fault = moved;
  return {};
}

}  // namespace firedrill

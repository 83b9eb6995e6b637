// Swarm: whole plans drawn from a seed: job variant x layout (perhaps another one behind a restart) x one to three
// faults x scheduler seed. In each plan first the kinds are drawn that exist in it at all, with weights of their own,
// then faults of these kinds (swarm testing: Groce et al., ISSTA 2012). Places come from a census of the variant in its
// layout, so that faults do fire; what damages numbers turns on the checks that must notice it.
//
// The fault budget keeps plans survivable: one beyond it is drawn again. One plan in 50 is beyond it on purpose; such a
// plan may end without reaching the golden, and must never give a wrong result (see `wrong_result` in trials.h).
//
// Threads: one a Swarm; two Swarms of the same base and options draw the same plans. Errors: those of a census.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/rng.h"
#include "harness/explore/swarm/places.h"
#include "harness/explore/swarm/weights.h"
#include "harness/run/run.h"

namespace firedrill {

struct SwarmOptions {
  std::vector<KindWeight> weights = {};  // in place of the defaults, for these kinds
  int ranks_max = 4;
  int variants_max = 8;
  bool beyond_budget = true;  // off: every plan is one that the right engine survives
  bool other_layouts = true;  // off: the base's layout only, and its recovery
};

// Edits of a job that do not depend on each other, some of them at a time; the first is the job itself. At most two
// sets of bits among them, so that goldens and memo pay.
std::vector<Job> job_variants(const Job& job, int count, std::uint64_t seed);

struct Drawn {
  Plan plan;
  bool beyond_budget = false;
};

class Swarm {
 public:
  // The seed of the base decides the variants, and what their layouts check now and then; world, mutant, name and path
  // go into every plan. The base's faults do not. Swarms of one base may share their places.
  explicit Swarm(Plan base, const SwarmOptions& options = {}, std::shared_ptr<PlacesOfGrounds> places = nullptr);

  const std::vector<Job>& variants() const { return variants_; }
  std::uint64_t seed() const { return base_.seed; }
  // The job and the layouts of a plan: what its computations are the same with.
  static std::string ground_of(const Plan& plan);
  // Of the layout that the plan begins with, whatever it checks, among those of the job; 0: it is none of them.
  std::size_t layout_number(const Plan& plan) const;
  // The session serves the censuses.
  Result<Drawn> draw(Session& session, std::uint64_t seed);
  // The parent, in a variant of this Swarm, with a fault more, less, elsewhere or drawn anew, under another layout, or
  // with another scheduler seed.
  Result<Drawn> mutate(Session& session, const Plan& parent, std::uint64_t seed);

 private:
  struct Kinds {  // those of one plan
    KindWeights weights{};
    std::uint64_t total = 0;
  };

  Kinds draw_kinds(Rng& rng) const;
  static Kinds only_kills();
  void draw_job_and_layouts(Rng& rng, Plan& plan) const;
  std::uint64_t choices_of_checks() const;
  Status draw_fault(Session& session, Rng& rng, const Kinds& kinds, Plan& plan);
  // Among the places of the layout in which its attempt runs. False: there is none.
  Result<bool> draw_place(Session& session, Rng& rng, const Plan& plan, FaultSpec& fault);
  Status draw_faults(Session& session, Rng& rng, const Kinds& kinds, Plan& plan);
  Plan adopted(Rng& rng, const Plan& parent) const;
  Status edit(Session& session, Rng& rng, Plan& plan);
  // To another place, with other options of its kind.
  Status move_fault(Session& session, Rng& rng, Plan& plan, std::size_t index);

  Plan base_;
  SwarmOptions options_;
  std::vector<Job> variants_;
  std::vector<std::vector<Layout>> layouts_;  // by variant
  KindWeights weights_;
  std::vector<std::string> run_ids_;  // by variant
  std::shared_ptr<PlacesOfGrounds> places_;
};

// Turns on, in the layouts of the plan, what notices the damage that its faults do.
void cover_damage(Plan& plan);
// Why no system could survive the plan, in words; empty: one can.
std::vector<std::string> beyond_budget(const Plan& plan);
// Restarts as many as the faults can need.
int restarts_for(const Plan& plan);

}  // namespace firedrill

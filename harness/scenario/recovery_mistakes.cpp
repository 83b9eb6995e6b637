#include "harness/scenario/recovery_mistakes.h"

#include "engine/base/units.h"
#include "faults/mistakes.h"

namespace firedrill {
namespace {

constexpr int ranks_max = 8192;  // of one run: each has a stack, or is a process

}  // namespace

std::vector<std::string> mistakes_in_recovery(const Scenario& scenario) {
  const RecoverySpec& recovery = scenario.recovery;
  Mistakes mistakes;
  if (recovery.budget < 0) mistakes.add("recovery.budget is {}: give 0 or more restarts", recovery.budget);
  if (recovery.spares < 0) mistakes.add("recovery.spares is {}: give 0 or more nodes", recovery.spares);
  if (recovery.spares > 0 && recovery.policy != RecoveryPolicy::spare) {
    mistakes.add("recovery.spares is {}: only `policy: spare` uses them", recovery.spares);
  }
  if (recovery.policy == RecoveryPolicy::spare && scenario.world == WorldKind::process) {
    mistakes.add("recovery.policy is spare: one machine has one node, which cannot be replaced; use `world: sim`");
  }
  const int ranks = scenario.layout.world_size();
  if (recovery.policy == RecoveryPolicy::fewer && (!recovery.layout || recovery.layout->world_size() >= ranks)) {
    mistakes.add("recovery.policy is fewer: give recovery.layout, of fewer ranks than the {} of layout {}", ranks,
                 to_string(scenario.layout));
  }
  for (const Layout* layout : {&scenario.layout, recovery.layout ? &*recovery.layout : nullptr}) {
    if (!layout || layout->world_size() <= ranks_max) continue;
    mistakes.add("{} has {} ranks: at most {} are run at once",
                 layout == &scenario.layout ? "layout" : "recovery.layout", layout->world_size(), ranks_max);
  }
  const BackoffSpec& backoff = recovery.backoff;
  if (backoff.initial < Duration{0} || backoff.max < backoff.initial) {
    mistakes.add("recovery.backoff.initial is {} and max {}: give 0 or more, and a max that is no less",
                 format_duration(backoff.initial), format_duration(backoff.max));
  }
  if (!(backoff.factor >= 1)) mistakes.add("recovery.backoff.factor is {}: give 1 or more", backoff.factor);
  return mistakes.take();
}

}  // namespace firedrill

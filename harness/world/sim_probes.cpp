// The probes of the sim world: what would be found on the disk at this moment, and behind a node's death.
#include <exception>

#include "faults/node_loss.h"
#include "harness/world/sim_recording.h"
#include "harness/world/sim_world.h"

namespace firedrill {

void SimWorld::probe_view(ProbeView view, const Event& place) {
  const sim::Disk& disk = resources_.machine.disk();
  const auto side = view == ProbeView::processes_die ? sim::View::processes_die : sim::View::power_fails;
  // The right engine and the audit look at no shard whose manifest is not there; a mutant may look anywhere.
  const bool by_manifests = subject_.plan.mutant.empty() && subject_.plan.job.checkpoint.catalog == CatalogKind::files;
  Event event = place;
  try {
    const auto look = [&] { return disk.look(side); };
    if (by_manifests) {
      const auto mark = [&](const CheckpointId& id) {
        return disk.digest_with_dependents(side, "manifests/" + to_string(id));
      };
      const auto by_class = [&](const auto& class_of) { return disk.digest_by_class(side, class_of); };
      event.a = prober_.ask(disk.digest_of_witnessed(side), kernels_, view, look, mark, by_class);
    } else {
      event.a = prober_.ask(disk.digest(side), kernels_, view, look);
    }
  } catch (...) {
    // This runs under a rank's call, and the rank is not to blame: kept for run_attempt, which is the harness's own.
    if (!trouble_) trouble_ = std::current_exception();
    return;
  }
  event.b = static_cast<std::int64_t>(view);
  event.c = event.attempt;
  event.rank = -1;
  recorder_.event(event);
}

void SimWorld::probe() {
  if (!options_.probes) return;
  const Event place{.kind = EventKind::probe,
                    .attempt = history_.size() > 0 ? history_[history_.size() - 1].attempt : 0};
  probe_view(ProbeView::processes_die, place);
  probe_view(ProbeView::power_fails, place);
}

void SimWorld::node_lost(int node, bool data, bool names, const Position& position) {
  const UnsyncedChooser chooser = lose_unsynced({.data = data, .names = names});
  std::vector<UnsyncedItem> lost;
  node_starts_.erase(node);  // whatever starts there next is another machine
  resources_.machine.disk().lose_unsynced(node, [&](const UnsyncedItem& item) {
    const bool chosen = chooser(item);
    if (chosen) lost.push_back(item);
    return chosen;
  });
  if (options_.recorder != nullptr) options_.recorder->node_died(node, lost);
  Event event{.kind = EventKind::node_lost,
              .phase = position.phase,
              .attempt = position.attempt,
              .step = position.step,
              .a = node,
              .b = data ? 1 : 0,
              .c = names ? 1 : 0};
  recorder_.event(event);
  event = {.kind = EventKind::probe, .phase = position.phase, .attempt = position.attempt, .step = position.step};
  probe_view(ProbeView::processes_die, event);
  probe_view(ProbeView::power_fails, event);
}

}  // namespace firedrill

// The probes of the sim world: what would be found on the disk at this moment.
#include <exception>

#include "harness/world/sim_world.h"

namespace firedrill {

void SimWorld::probe_view(ProbeView view, const Event& place) {
  const sim::Disk& disk = resources_.machine.disk();
  const auto side = view == ProbeView::processes_die ? sim::View::processes_die : sim::View::power_fails;
  Event event = place;
  try {
    event.a = prober_.ask(disk.digest(side), kernels_, view, [&] { return disk.snapshot(side); });
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

}  // namespace firedrill

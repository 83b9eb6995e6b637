// The probes of the sim world: what would be found on the disk at this moment, and behind a node's death.
#include <exception>

#include "engine/ckpt/catalog.h"
#include "faults/node_loss.h"
#include "harness/world/sim_recording.h"
#include "harness/world/sim_world.h"

namespace firedrill {

namespace {

sim::View side_of(ProbeView view) {
  return view == ProbeView::processes_die ? sim::View::processes_die : sim::View::power_fails;
}

}  // namespace

// The right engine and the audit look at no shard of which no record says that it is committed; a mutant may look
// anywhere.
std::int64_t SimWorld::ask(ProbeView view) {
  if (subject_.plan.mutant.empty()) {
    return subject_.plan.job.checkpoint.catalog == CatalogKind::files ? ask_by_manifests(view) : ask_by_records(view);
  }
  const sim::Disk& disk = resources_.machine.disk();
  const auto look = [&] { return disk.look(side_of(view)); };
  return prober_.ask(disk.digest(side_of(view)), kernels_, view, look);
}

std::int64_t SimWorld::ask_by_manifests(ProbeView view) {
  const sim::Disk& disk = resources_.machine.disk();
  const sim::View side = side_of(view);
  const auto look = [&] { return disk.look(side); };
  const auto mark = [&](const CheckpointId& id) {
    return disk.digest_with_dependents(side, "manifests/" + to_string(id));
  };
  const auto by_class = [&](const auto& class_of) { return disk.digest_by_class(side, class_of); };
  return prober_.ask(disk.digest_of_witnessed(side), kernels_, view, look, mark, by_class);
}

std::int64_t SimWorld::ask_by_records(ProbeView view) {
  const sim::Disk& disk = resources_.machine.disk();
  const sim::View side = side_of(view);
  const auto look = [&] { return disk.look(side); };
  const auto known = [&]() -> const StoreViews::Known& {
    return resources_.stores.of(disk.digest_below(side, catalog_directory), *look());
  };
  const auto mark_of = [&](const StoreViews::Committed& committed) {
    return DigestBuilder()
        .add(std::string_view(committed.record))
        .add(committed.manifest)
        .add(disk.sum_of_dependents(side, committed.record))
        .finish();
  };
  // All that counts, with each committed checkpoint as `term_of` has it.
  const auto content = [&](const StoreViews::Known& now, const Digest& records, const auto& term_of) {
    Digest rest = disk.digest_of_witnessed(side);
    sim::take_from(rest, disk.digest_below(side, catalog_directory));
    DigestBuilder digest;
    digest.add(rest).add(records);
    for (const StoreViews::Committed& committed : now.committed) digest.add(term_of(committed));
    return digest.finish();
  };
  // Most operations change nothing of a view.
  ByRecords& last = by_records_[static_cast<std::size_t>(view)];
  if (!last.known || last.view != disk.digest(side)) {
    const StoreViews::Known& now = known();
    last = {.view = disk.digest(side), .content = disk.digest(side), .decides = now.decides, .known = true};
    if (last.decides) last.content = content(now, now.records, mark_of);
  }
  if (!last.decides) return prober_.ask(last.content, kernels_, view, look);
  const auto mark = [&](const CheckpointId& id) -> std::optional<Digest> {
    const StoreViews::Committed* const committed = known().find(id);
    return committed == nullptr ? std::nullopt : std::optional(mark_of(*committed));
  };
  const auto by_class = [&](const auto& class_of) -> std::optional<Digest> {
    const StoreViews::Known& now = known();
    return content(now, now.others, [&](const StoreViews::Committed& each) { return class_of(mark_of(each)); });
  };
  return prober_.ask(last.content, kernels_, view, look, mark, by_class);
}

void SimWorld::probe_view(ProbeView view, const Event& place) {
  Event event = place;
  try {
    event.a = ask(view);
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

// Retention: what may go once a newer checkpoint is validated, and the sweep of what dead attempts left behind.
#include <algorithm>

#include "engine/ckpt/agree.h"
#include "engine/ckpt/files.h"
#include "engine/ckpt/protocol.h"

namespace firedrill {
std::vector<CheckpointId> Protocol::victims(const std::vector<Known>& known, int keep_validated) const {
  std::vector<CheckpointId> victims;
  int kept = 0;
  for (auto at = known.rbegin(); at != known.rend(); ++at) {
    if (at->standing == Known::Standing::dropped || kept >= keep_validated) {
      victims.push_back(at->id);
    } else if (at->standing == Known::Standing::validated) {
      ++kept;
    }
  }
  return victims;
}

Status Protocol::retire(const CheckpointContext& ctx, const std::vector<CheckpointId>& ids) {
  FileSystem& files = ctx.parts.files;
  Observer& observer = ctx.parts.observer;
  Catalog& catalog = catalog_for(ctx.job, ctx.parts.compute);
  FD_TRY_VOID(catalog.bury(files, ids));
  for (const CheckpointId& id : ids) {
    emit(observer, ctx.parts.position,
         {.kind = EventKind::retired,
          .a = id.step,
          .b = id.attempt,
          .c = id.trial,
          .name = observer.intern(to_string(id))});
  }
  return erase_buried(ctx, ids);
}

Status Protocol::erase_buried(const CheckpointContext& ctx, const std::vector<CheckpointId>& ids) {
  FileSystem& files = ctx.parts.files;
  Catalog& catalog = catalog_for(ctx.job, ctx.parts.compute);
  FD_TRY_VOID(catalog.unlist(files, ids));
  // Now no crash can bring back a manifest whose shards are gone.
  for (const CheckpointId& id : ids) FD_TRY_VOID(remove_tree(files, shard_directory(id)));
  FD_TRY_VOID(catalog.forget(files, ids));
  return files.sync_directory(directory::shards);
}

void Protocol::remember(const CheckpointId& id, Known::Standing standing) {
  const auto at = std::lower_bound(known_.begin(), known_.end(), id,
                                   [](const Known& known, const CheckpointId& other) { return known.id < other; });
  if (at != known_.end() && at->id == id) {
    at->standing = standing;
  } else {
    known_.insert(at, Known{.id = id, .standing = standing});
  }
}

// No rank reads what goes here: each has passed the exchange behind the trial restore, and a restore lies before the
// first publish.
Status Protocol::retain(const CheckpointContext& ctx) {
  const std::vector<CheckpointId> gone = victims(known_, ctx.job.checkpoint.keep_validated);
  if (!gone.empty()) {
    FD_TRY_VOID(retire(ctx, gone));
    std::erase_if(known_,
                  [&gone](const Known& known) { return std::find(gone.begin(), gone.end(), known.id) != gone.end(); });
  }
  // The tombstones of one retirement stay until the next: a rank with an old listing still sees that these are gone.
  Catalog& catalog = catalog_for(ctx.job, ctx.parts.compute);
  FD_TRY_VOID(catalog.remove_tombstones(ctx.parts.files, tombstones_));
  tombstones_ = gone;
  if (!sweep_due_) return {};
  FD_TRY_VOID(sweep(ctx));
  sweep_due_ = false;
  return {};
}

Status Protocol::sweep(const CheckpointContext& ctx) {
  FileSystem& files = ctx.parts.files;
  const auto is_listed = [this](const CheckpointId& id) {
    return std::any_of(known_.begin(), known_.end(), [&id](const Known& known) { return known.id == id; });
  };
  Catalog& catalog = catalog_for(ctx.job, ctx.parts.compute);
  FD_TRY(const auto shards, names_in(files, directory::shards));
  std::vector<CheckpointId> left = ids_among(shards);
  std::erase_if(left, [&](const CheckpointId& id) { return id.attempt >= ctx.attempt || is_listed(id); });
  // A manifest that a dead attempt removed may come back, if the sync behind its removal failed.
  const auto buried = std::partition(left.begin(), left.end(), [this](const CheckpointId& id) {
    return std::find(buried_before_.begin(), buried_before_.end(), id) == buried_before_.end();
  });
  if (const std::vector<CheckpointId> again(buried, left.end()); !again.empty()) {
    FD_TRY_VOID(catalog.bury(files, again));
    FD_TRY_VOID(erase_buried(ctx, again));
  }
  left.erase(buried, left.end());
  for (const CheckpointId& id : left) FD_TRY_VOID(remove_tree(files, shard_directory(id)));
  FD_TRY_VOID(files.sync_directory(directory::shards));
  const auto goes = [&](std::string_view marks, const CheckpointId& id) {
    const bool recent = std::find(tombstones_.begin(), tombstones_.end(), id) != tombstones_.end();
    const bool excuses = marks == directory::rejected && id.step >= ctx.floor;  // a start below the floor
    return id.attempt < ctx.attempt && !is_listed(id) && !recent && !excuses;
  };
  return catalog.sweep(files, ctx.attempt, goes);
}

}  // namespace firedrill

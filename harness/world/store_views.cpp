#include "harness/world/store_views.h"

#include <algorithm>
#include <utility>

#include "engine/ckpt/catalog.h"
#include "engine/ckpt/files.h"
#include "engine/rocks/record_store.h"

namespace firedrill {
namespace {

// A store without a record is as good as none, and then whatever else lies in the root counts.
StoreViews::Known read_store(FileSystem& files) {
  const auto loaded = load_store(files, catalog_directory);
  if (!loaded) return {};
  const auto decoded = decode_store(*loaded);
  if (!decoded) return {};
  const RecordView view(*decoded);
  StoreViews::Known known{.decides = view.size() > 0, .records = decoded->digest(), .others = {}, .committed = {}};
  DigestBuilder others;
  const std::string manifests = path_in(directory::manifests, std::string_view());
  for (std::size_t i = 0; i < view.size(); ++i) {
    const std::string_view name = view.name(i);
    others.add(name);
    if (!name.starts_with(manifests)) {
      others.add(view.value(i).digest());
      continue;
    }
    const auto id = checkpoint_id_from(name.substr(manifests.size()));
    if (!id) return {};
    known.committed.push_back({.id = *id, .record = std::string(name), .manifest = view.value(i).digest()});
  }
  known.others = others.finish();
  return known;
}

}  // namespace

const StoreViews::Committed* StoreViews::Known::find(const CheckpointId& id) const {
  const auto found =
      std::find_if(committed.begin(), committed.end(), [&id](const Committed& other) { return other.id == id; });
  return found == committed.end() ? nullptr : &*found;
}

const StoreViews::Known& StoreViews::of(const Digest& content, FileSystem& files) {
  if (const auto known = known_.find(content); known != known_.end()) return known->second;
  if (known_.size() >= known_max) known_.clear();
  return known_.emplace(content, read_store(files)).first->second;
}

}  // namespace firedrill

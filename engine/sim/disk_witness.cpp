// What means something only beside its witness, as shards do beside their manifest: of each witness the sum of what
// depends on it, and of all that has none at this moment.
#include "engine/sim/disk.h"

namespace firedrill::sim {

Disk::Dependents& Disk::dependents_of(PathId witness) {
  for (Dependents& each : dependents_) {
    if (each.witness == witness) return each;
  }
  return dependents_.emplace_back(Dependents{.witness = witness, .sum = {}});
}

const Disk::Dependents* Disk::dependents_of(const PathTable::Entry& witness) const {
  for (const Dependents& each : dependents_) {
    if (&paths_[each.witness] == &witness) return &each;
  }
  return nullptr;
}

void Disk::add_to_dependents(std::size_t view, PathId witness, const Digest& part) {
  add_to(dependents_of(witness).sum[view], part);
  if (paths_[witness].inode[view] == none) add_to(unwitnessed_[view], part);
}

void Disk::take_from_dependents(std::size_t view, PathId witness, const Digest& part) {
  take_from(dependents_of(witness).sum[view], part);
  if (paths_[witness].inode[view] == none) take_from(unwitnessed_[view], part);
}

void Disk::note_witness(std::size_t view, PathId path, bool is_there) {
  const Digest& sum = dependents_of(path).sum[view];
  if (is_there) {
    take_from(unwitnessed_[view], sum);
  } else {
    add_to(unwitnessed_[view], sum);
  }
}

Digest Disk::digest_of_dependents(std::size_t view, const Dependents& dependents) const {
  return DigestBuilder().add(paths_[dependents.witness].term[view]).add(dependents.sum[view]).finish();
}

std::optional<Digest> Disk::digest_with_dependents(View view, std::string_view witness) const {
  if (options_.dependent.empty()) return std::nullopt;
  const PathTable::Entry* const entry = paths_.find(witness);
  if (entry == nullptr || entry->inode[index(view)] == none) return std::nullopt;
  if (const Dependents* const found = dependents_of(*entry)) return digest_of_dependents(index(view), *found);
  return DigestBuilder().add(entry->term[index(view)]).finish();
}

Digest Disk::sum_of_dependents(View view, std::string_view witness) const {
  const PathTable::Entry* const entry = paths_.find(witness);
  const Dependents* const found = entry == nullptr ? nullptr : dependents_of(*entry);
  return found == nullptr ? Digest{} : found->sum[index(view)];
}

Digest Disk::digest_below(View view, std::string_view directory) const {
  Digest sum;
  const PathTable::Entry* const top = paths_.find(directory);
  if (top != nullptr && top->inode[index(view)] != none) add_terms_below(index(view), *top, sum);
  return sum;
}

void Disk::add_terms_below(std::size_t view, const PathTable::Entry& directory, Digest& sum) const {
  for (const Child& child : at(directory.inode[view]).children[view]) {
    for (const PathId path : at(child.inode).paths[view]) {
      const PathTable::Entry& entry = paths_[path];
      if (file_name(entry.text) != child.name || parent_path(entry.text) != directory.text) continue;
      add_to(sum, entry.term[view]);
      add_terms_below(view, entry, sum);
    }
  }
}

Digest Disk::digest_by_class(View view, const std::function<Digest(const Digest&)>& class_of) const {
  Digest digest = digest_of_witnessed(view);
  for (const Dependents& each : dependents_) {
    const PathTable::Entry& witness = paths_[each.witness];
    if (witness.inode[index(view)] == none) continue;
    take_from(digest, witness.term[index(view)]);
    take_from(digest, each.sum[index(view)]);
    const Digest found = class_of(digest_of_dependents(index(view), each));
    add_to(digest, DigestBuilder().add(witness.digest).add(found).finish());
  }
  return digest;
}

}  // namespace firedrill::sim

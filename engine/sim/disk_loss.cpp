// What a node's death makes of its unsynced changes, what a failed sync makes of them, and damage at rest.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "engine/sim/disk.h"

namespace firedrill::sim {

std::vector<Disk::Pending> Disk::pending_in_order() const {
  std::vector<Pending> all;
  for (InodeId id = root; id < inode_count_; ++id) {
    const Inode& inode = at(id);
    for (std::size_t i = 0; i < inode.pending_writes.size(); ++i) {
      all.push_back({inode.pending_writes[i].operation, id, i, false, false});
    }
    for (std::size_t i = 0; i < inode.pending_names.size(); ++i) {
      const PendingName& name = inode.pending_names[i];
      all.push_back({name.operation, id, i, true, name.inode == none});
    }
  }
  // A rename's removal comes first, as it was done.
  std::sort(all.begin(), all.end(), [](const Pending& a, const Pending& b) {
    return std::tuple(a.operation, !a.removal) < std::tuple(b.operation, !b.removal);
  });
  return all;
}

UnsyncedItem Disk::describe_item(const Pending& pending) {
  const Inode& inode = at(pending.inode);
  const std::vector<PathId>& paths = inode.paths[live].empty() ? inode.paths[durable] : inode.paths[live];
  if (pending.is_name) {
    const PendingName& name = inode.pending_names[pending.index];
    const PathId path = paths.empty() ? name.path : path_in(paths.front(), name_of(name.path), name.path);
    return {.kind = UnsyncedKind::name,
            .node = name.node,
            .path = paths_[path].text,
            .operation = name.operation,
            .removal = pending.removal};
  }
  const PendingWrite& write = inode.pending_writes[pending.index];
  return {.kind = UnsyncedKind::data,
          .node = write.node,
          .path = paths.empty() ? std::string_view() : paths_[paths.front()].text,
          .operation = write.operation,
          .offset = write.offset,
          .size = static_cast<std::int64_t>(write.bytes.size())};
}

std::vector<UnsyncedItem> Disk::unsynced() {
  std::vector<UnsyncedItem> items;
  for (const Pending& pending : pending_in_order()) items.push_back(describe_item(pending));
  return items;
}

Disk::Lost Disk::lose_unsynced(int node, const UnsyncedChooser& lost) {
  Lost count;
  std::vector<InodeId> touched;
  for (const Pending& pending : pending_in_order()) {
    const UnsyncedItem item = describe_item(pending);
    if (item.node != node) continue;
    const bool forgotten = pending.is_name ? at(pending.inode).pending_names[pending.index].forgotten
                                           : at(pending.inode).pending_writes[pending.index].forgotten;
    const bool gone = forgotten || lost(item);
    if (pending.is_name) {
      at(pending.inode).pending_names[pending.index].lost = gone;
      count.names += gone;
    } else {
      at(pending.inode).pending_writes[pending.index].lost = gone;
      count.data += gone;
    }
    touched.push_back(pending.inode);
  }
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  for (const InodeId inode : touched) refer(inode);  // none goes while others still need it
  for (const InodeId inode : touched) {
    settle_lost_writes(inode, node);
    settle_lost_names(inode, node);
  }
  for (const InodeId inode : touched) unrefer(inode);
  return count;
}

void Disk::forget_unsynced(FileOp sync, std::string_view path, int node) {
  const InodeId inode = find(path);
  if (inode == none) return;
  if (sync == FileOp::sync) {
    for (PendingWrite& write : at(inode).pending_writes) write.forgotten |= write.node == node;
  } else {
    for (PendingName& name : at(inode).pending_names) name.forgotten |= name.node == node;
  }
}

Status Disk::overwrite(std::string_view path, std::int64_t offset, const Value& bytes) {
  FD_TRY(const OpenFile file, open(path));
  const auto end = offset + static_cast<std::int64_t>(bytes.size());
  const std::int64_t there = at(file.inode).content[live].size();
  if (end > there) {
    release(file.inode);
    return Error{.code = Code::internal,
                 .message = fmt::format("'{}' holds {} bytes, and up to {} were to be overwritten", path, there, end)};
  }
  for (const std::size_t view : {live, durable}) {
    Content& content = at(file.inode).content[view];
    if (end > content.size()) continue;  // what is not durable there cannot be damaged there
    count_content(view, file.inode, false);
    content.write(offset, bytes);
    count_content(view, file.inode, true);
  }
  ++operations_;
  release(file.inode);
  return {};
}

void Disk::settle_lost_writes(InodeId file, int node) {
  Inode& inode = at(file);
  if (inode.pending_writes.empty()) return;
  count_content(durable, file, false);
  count_content(live, file, false);
  for (const PendingWrite& write : inode.pending_writes) {
    if (write.node == node && !write.lost) inode.content[durable].write(write.offset, write.bytes);
  }
  std::erase_if(inode.pending_writes, [node](const PendingWrite& write) { return write.node == node; });
  inode.content[live] = inode.content[durable];
  for (const PendingWrite& write : inode.pending_writes) inode.content[live].write(write.offset, write.bytes);
  count_content(durable, file, true);
  count_content(live, file, true);
}

void Disk::settle_lost_names(InodeId directory, int node) {
  const std::vector<PendingName> before = std::move(at(directory).pending_names);
  std::vector<PendingName>& left = at(directory).pending_names;
  left.clear();
  for (const PendingName& name : before) {
    if (name.node != node) {
      left.push_back(name);
    } else if (!name.lost) {
      set_child(durable, {.directory = directory, .path = name.path}, name.inode);
    }
  }
  for (const PendingName& touched : before) {
    InodeId now = child(durable, directory, name_of(touched.path));
    for (const PendingName& name : left) {
      if (name_of(name.path) == name_of(touched.path)) now = name.inode;
    }
    set_child(live, {.directory = directory, .path = touched.path}, now);
  }
  for (const PendingName& name : before) {
    if (name.node == node && name.inode != none) unrefer(name.inode);
  }
}

}  // namespace firedrill::sim

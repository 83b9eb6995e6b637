#include "engine/sim/disk.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/base/check.h"

namespace firedrill::sim {
namespace {

Error not_found(std::string_view path) { return {.code = Code::not_found, .message = fmt::format("no '{}'", path)}; }
Error refused(std::string_view path, std::string_view why) {
  return {.code = Code::io_error, .message = fmt::format("'{}' {}", path, why)};
}
Error taken(std::string_view path) {
  return {.code = Code::already_exists, .message = fmt::format("'{}' exists already", path)};
}
Error full(std::string_view path, std::int64_t wanted, std::int64_t left) {
  return {.code = Code::no_space,
          .message = fmt::format("'{}' needs {} bytes and {} are left", path, wanted, left),
          .hint = "free space on the checkpoint storage"};
}

}  // namespace

void Disk::Inode::clear() {
  kind = FileKind::file;
  modified = Time{0};
  references = 0;
  for (std::size_t view : {live, durable}) {
    content[view].clear();
    paths[view].clear();
    children[view].clear();
  }
  pending_writes.clear();
  pending_names.clear();
}

void Disk::reset(const DiskOptions& options) {
  options_ = options;
  for (std::size_t i = 0; i < inode_count_; ++i) inodes_[i].clear();
  inode_count_ = 0;
  paths_.depend({.dependent = options.dependent, .witness = options.witness, .unread = options.unread});
  paths_.reset();
  view_digest_[live] = view_digest_[durable] = {};
  unwitnessed_[live] = unwitnessed_[durable] = {};
  dependents_.clear();
  used_ = 0;
  operations_ = 0;
  ++generation_;
  log_.clear();
  new_inode(FileKind::directory);  // `none`, so that no inode has the number 0
  const InodeId top = new_inode(FileKind::directory);
  refer(top);
  reach(live, top, PathTable::root);
  reach(durable, top, PathTable::root);
}

Disk::InodeId Disk::new_inode(FileKind kind) {
  if (inode_count_ == inodes_.size()) inodes_.emplace_back();
  inodes_[inode_count_].kind = kind;
  return static_cast<InodeId>(inode_count_++);
}

void Disk::unrefer(InodeId id) {
  Inode& inode = at(id);
  if (--inode.references > 0) return;
  for (std::size_t view : {live, durable}) {
    inode.content[view].clear();
    for (const Child& entry : inode.children[view]) unrefer(entry.inode);
    inode.children[view].clear();
  }
  for (const PendingName& name : inode.pending_names) {
    if (name.inode != none) unrefer(name.inode);
  }
  inode.pending_names.clear();
  inode.pending_writes.clear();
}

Disk::InodeId Disk::find(std::string_view path) const {
  const PathTable::Entry* entry = paths_.find(path);
  return entry ? entry->inode[live] : none;
}

Result<Disk::Spot> Disk::spot_for(std::string_view path) {
  if (path.empty()) return refused(path, "is the root, which stays as it is");
  const PathId id = paths_.intern(path);
  const InodeId directory = paths_[paths_.parent(id)].inode[live];
  if (directory == none || at(directory).kind != FileKind::directory) return not_found(parent_path(path));
  return Spot{.directory = directory, .path = id};
}

// Operations.

Result<Disk::OpenFile> Disk::create(std::string_view path, const Issuer& issuer) {
  if (path.empty()) return taken(path);
  FD_TRY(const Spot spot, spot_for(path));
  if (paths_[spot.path].inode[live] != none) return taken(path);
  if (free_space() <= 0) return full(path, 1, free_space());
  ++operations_;
  const InodeId file = new_inode(FileKind::file);
  refer(file);
  touch(file, issuer.node);
  change_name(spot, file, issuer);
  note_change({.op = FileOp::create, .path = path, .issuer = issuer}, file);
  return OpenFile{.inode = file, .path = paths_[spot.path].text};
}

Result<Disk::OpenFile> Disk::open(std::string_view path) {
  const PathTable::Entry* entry = paths_.find(path);
  if (!entry || entry->inode[live] == none) return not_found(path);
  const InodeId file = entry->inode[live];
  if (at(file).kind != FileKind::file) return refused(path, "is a directory");
  refer(file);
  return OpenFile{.inode = file, .path = entry->text};
}

void Disk::release(InodeId file) { unrefer(file); }

Status Disk::write(InodeId file, std::int64_t offset, const Value& bytes, std::string_view path, const Issuer& issuer) {
  Inode& inode = at(file);
  const auto count = static_cast<std::int64_t>(bytes.size());
  const std::int64_t growth = std::max<std::int64_t>(0, offset + count - inode.content[live].size());
  if (growth > free_space() && !inode.paths[live].empty()) return full(path, growth, free_space());
  ++operations_;
  count_content(live, file, false);
  inode.content[live].write(offset, bytes);
  count_content(live, file, true);
  touch(file, issuer.node);
  inode.pending_writes.push_back({.offset = offset, .bytes = bytes, .node = issuer.node, .operation = operations_});
  note_change({.op = FileOp::write, .path = path, .bytes = count, .issuer = issuer}, file, offset, bytes);
  return {};
}

Value Disk::read(InodeId file, std::int64_t offset, std::int64_t size) const {
  return at(file).content[live].read(offset, size);
}

std::int64_t Disk::size(InodeId file) const { return at(file).content[live].size(); }

void Disk::sync(InodeId file, std::string_view path, const Issuer& issuer) {
  ++operations_;
  sync_writes(file, issuer.node);
  note_change({.op = FileOp::sync, .path = path, .issuer = issuer}, file);
}

Result<FileInfo> Disk::stat(std::string_view path) const {
  const InodeId inode = find(path);
  if (inode == none) return not_found(path);
  return FileInfo{.kind = at(inode).kind, .size = at(inode).content[live].size(), .modified = at(inode).modified};
}

Result<std::vector<std::string>> Disk::list(std::string_view directory) const {
  const InodeId inode = find(directory);
  if (inode == none) return not_found(directory);
  if (at(inode).kind != FileKind::directory) return refused(directory, "is not a directory");
  std::vector<std::string> names;
  names.reserve(at(inode).children[live].size());
  for (const Child& entry : at(inode).children[live]) names.emplace_back(entry.name);
  return names;
}

Status Disk::rename(std::string_view from, std::string_view to, const Issuer& issuer) {
  const InodeId source = find(from);
  if (source == none) return not_found(from);
  FD_TRY(const Spot old_spot, spot_for(from));
  FD_TRY(const Spot new_spot, spot_for(to));
  const InodeId target = find(to);
  const bool moves_directory = at(source).kind == FileKind::directory;
  if (target != none && target != source && (moves_directory || at(target).kind == FileKind::directory)) {
    return refused(to, "is in the way of a rename");
  }
  if (moves_directory && old_spot.directory != new_spot.directory) {
    return refused(from, "is a directory and cannot move to another one");
  }
  ++operations_;
  if (target != source) {
    change_name(old_spot, none, issuer);
    change_name(new_spot, source, issuer);
  }
  note_change({.op = FileOp::rename, .path = from, .second = to, .issuer = issuer});
  return {};
}

Status Disk::remove(std::string_view path, const Issuer& issuer) {
  const InodeId inode = find(path);
  if (inode == none) return not_found(path);
  FD_TRY(const Spot spot, spot_for(path));
  if (!at(inode).children[live].empty()) return refused(path, "is a directory that is not empty");
  ++operations_;
  change_name(spot, none, issuer);
  note_change({.op = FileOp::remove, .path = path, .issuer = issuer});
  return {};
}

Status Disk::make_directory(std::string_view path, const Issuer& issuer) {
  if (find(path) != none) return taken(path);
  FD_TRY(const Spot spot, spot_for(path));
  if (free_space() <= 0) return full(path, 1, free_space());
  ++operations_;
  const InodeId made = new_inode(FileKind::directory);
  touch(made, issuer.node);
  change_name(spot, made, issuer);
  note_change({.op = FileOp::make_directory, .path = path, .issuer = issuer});
  return {};
}

Status Disk::sync_directory(std::string_view directory, const Issuer& issuer) {
  const InodeId inode = find(directory);
  if (inode == none) return not_found(directory);
  if (at(inode).kind != FileKind::directory) return refused(directory, "is not a directory");
  ++operations_;
  sync_names(inode, issuer.node);
  note_change({.op = FileOp::sync_directory, .path = directory, .issuer = issuer});
  return {};
}

// The node's writes become durable, and with them what others wrote to the same bytes before.
void Disk::sync_writes(InodeId file, int node) {
  Inode& inode = at(file);
  const auto is_own = [node](const PendingWrite& write) { return write.node == node && !write.forgotten; };
  std::vector<PendingWrite>& pending = inode.pending_writes;
  if (std::none_of(pending.begin(), pending.end(), is_own)) return;
  count_content(durable, file, false);
  if (std::all_of(pending.begin(), pending.end(), is_own)) {
    inode.content[durable] = inode.content[live];
    pending.clear();
  } else {
    std::vector<PendingWrite> left;
    for (auto write = pending.begin(); write != pending.end(); ++write) {
      const bool covered = std::any_of(write, pending.end(), [&](const PendingWrite& later) {
        return is_own(later) && (&later == &*write || overlap(later, *write));
      });
      if (covered) {
        inode.content[durable].write(write->offset, write->bytes);
      } else {
        left.push_back(*write);
      }
    }
    pending = std::move(left);
  }
  count_content(durable, file, true);
}

// The node's last word on each entry it changed becomes durable; what anybody said of that entry before goes with it.
void Disk::sync_names(InodeId directory, int node) {
  std::vector<PendingName>& pending = at(directory).pending_names;
  const auto flushed = [node](const PendingName& name) { return name.node == node && !name.forgotten; };
  if (std::none_of(pending.begin(), pending.end(), flushed)) return;
  std::vector<PendingName> settled;
  std::vector<PendingName> left;
  for (auto name = pending.begin(); name != pending.end(); ++name) {
    const bool covered = std::any_of(name, pending.end(), [&](const PendingName& later) {
      return flushed(later) && (later.path == name->path || name_of(later.path) == name_of(name->path));
    });
    (covered ? settled : left).push_back(*name);
  }
  pending = std::move(left);
  for (const PendingName& name : settled) {
    if (flushed(name)) set_child(durable, {.directory = directory, .path = name.path}, name.inode);
  }
  for (const PendingName& name : settled) {
    if (name.inode != none) unrefer(name.inode);
  }
}

// Entries and what can be reached through them.

std::vector<Disk::Child>::iterator Disk::find_child(std::vector<Child>& children, std::string_view name) {
  return std::partition_point(children.begin(), children.end(), [name](const Child& c) { return c.name < name; });
}

Disk::InodeId Disk::child(std::size_t view, InodeId directory, std::string_view name) {
  std::vector<Child>& children = at(directory).children[view];
  const auto found = find_child(children, name);
  return found != children.end() && found->name == name ? found->inode : none;
}

void Disk::set_child(std::size_t view, const Spot& spot, InodeId inode) {
  Inode& parent = at(spot.directory);
  const std::string_view name = name_of(spot.path);
  const auto place = find_child(parent.children[view], name);
  const bool there = place != parent.children[view].end() && place->name == name;
  const InodeId before = there ? place->inode : none;
  if (before == inode) return;
  if (before != none) {
    for (const PathId path : parent.paths[view]) unreach(view, before, path_in(path, name, spot.path));
  }
  if (inode == none) {
    parent.children[view].erase(place);
  } else if (there) {
    place->inode = inode;
  } else {
    parent.children[view].insert(place, Child{.name = name, .inode = inode});
  }
  if (inode != none) {
    refer(inode);
    for (const PathId path : parent.paths[view]) reach(view, inode, path_in(path, name, spot.path));
  }
  if (before != none) unrefer(before);
}

void Disk::change_name(const Spot& spot, InodeId inode, const Issuer& issuer) {
  if (inode != none) refer(inode);
  at(spot.directory)
      .pending_names.push_back({.path = spot.path, .inode = inode, .node = issuer.node, .operation = operations_});
  touch(spot.directory, issuer.node);
  set_child(live, spot, inode);
}

PathId Disk::path_in(PathId directory, std::string_view name, PathId guess) {
  if (guess != PathTable::root && paths_.parent(guess) == directory) return guess;
  scratch_ = paths_[directory].text;
  if (!scratch_.empty()) scratch_ += '/';
  scratch_ += name;
  return paths_.intern(scratch_);
}

void Disk::reach(std::size_t view, InodeId inode, PathId path) {
  Inode& node = at(inode);
  count_content(view, inode, false);
  node.paths[view].push_back(path);
  FD_CHECK(paths_[path].inode[view] == none, "'{}' stands at two inodes", paths_[path].text);
  paths_[path].inode[view] = inode;
  if (paths_[path].is_witness) note_witness(view, path, true);
  count_content(view, inode, true);
  for (const Child& entry : node.children[view]) reach(view, entry.inode, path_in(path, entry.name));
}

void Disk::unreach(std::size_t view, InodeId inode, PathId path) {
  Inode& node = at(inode);
  for (const Child& entry : node.children[view]) unreach(view, entry.inode, path_in(path, entry.name));
  count_content(view, inode, false);
  std::erase(node.paths[view], path);
  paths_[path].inode[view] = none;
  if (paths_[path].is_witness) note_witness(view, path, false);
  count_content(view, inode, true);
}

void Disk::count_content(std::size_t view, InodeId inode, bool add) {
  const Inode& node = at(inode);
  for (const PathId path : node.paths[view]) {
    Digest& counted = paths_[path].term[view];
    const PathId witness = paths_[path].witness;
    if (!add) {
      take_from(view_digest_[view], counted);
      if (witness != 0) take_from_dependents(view, witness, counted);
    } else {
      counted = term(view, inode, path);
      add_to(view_digest_[view], counted);
      if (witness != 0) add_to_dependents(view, witness, counted);
    }
  }
  if (view == live && !node.paths[live].empty()) used_ += add ? node.content[live].size() : -node.content[live].size();
}

Digest Disk::term(std::size_t view, InodeId inode, PathId path) const {
  return DigestBuilder()
      .add(paths_[path].digest)
      .add(static_cast<std::uint64_t>(at(inode).kind))
      .add(at(inode).content[view].digest())
      .finish();
}

void Disk::note_change(const DiskChange& change, InodeId file, std::int64_t offset, const Value& bytes) {
  if (options_.log) {
    log_.push_back({.op = change.op,
                    .path = std::string(change.path),
                    .second = std::string(change.second),
                    .file = file,
                    .offset = offset,
                    .bytes = bytes,
                    .issuer = change.issuer});
  }
  if (on_change) on_change(change);
}

}  // namespace firedrill::sim

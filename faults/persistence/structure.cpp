#include "faults/persistence/structure.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace firedrill::crash {

namespace {

Error contradiction(const Trace& trace, OperationId id, std::string_view what) {
  return Error{.code = Code::invalid_input,
               .message = fmt::format("operation {} of the trace, {}: {}", id, describe(trace, id), what),
               .hint = "record the run again; the base must hold all that was there before"};
}

}  // namespace

InodeId NameCell::seen() const {
  return std::find_if(versions.rbegin(), versions.rend(), [](const NameVersion& v) { return !v.lost_by; })->inode;
}

std::int64_t FileHistory::size_kept() const {
  return std::find_if(sizes.rbegin(), sizes.rend(), [](const SizeVersion& v) { return !v.lost_by && !v.failed; })->size;
}

std::int64_t FileHistory::size_seen() const {
  return std::find_if(sizes.rbegin(), sizes.rend(), [](const SizeVersion& v) { return !v.lost_by; })->size;
}

Result<Structure> Structure::of(const Trace& trace) {
  Structure structure(trace);
  FD_TRY_VOID(structure.begin());
  for (OperationId id = 0; id < trace.operations.size(); ++id) FD_TRY_VOID(structure.apply(id));
  return structure;
}

Status Structure::begin() {
  directories[root_inode];
  paths[root_inode] = "";
  for (const BaseEntry& entry : trace_->base) {
    FD_TRY(const InodeId parent, directory_at(parent_path(entry.path)));
    const auto cell = static_cast<std::uint32_t>(names.size());
    names.push_back({parent, std::string(file_name(entry.path)), {NameVersion{.inode = entry.inode}}});
    directories[parent].cells.emplace(names.back().name, cell);
    paths.emplace(entry.inode, entry.path);
    if (entry.kind == FileKind::directory) {
      directories[entry.inode];
    } else {
      FileHistory& file = files[entry.inode];
      file.base = entry.bytes ? entry.bytes.as_bytes() : Value::copy_of(std::string_view());
      file.sizes.push_back({.size = static_cast<std::int64_t>(file.base.size())});
    }
  }
  return {};
}

Result<InodeId> Structure::directory_at(std::string_view path) const {
  InodeId inode = root_inode;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
    const DirectoryHistory& directory = directories.at(inode);
    const auto cell = directory.cells.find(part);
    inode = cell == directory.cells.end() ? no_inode : names[cell->second].seen();
    if (!directories.contains(inode)) {
      return Error{.code = Code::not_found, .message = fmt::format("no directory {}", part)};
    }
  }
  return inode;
}

Result<Structure::Spot> Structure::spot(OperationId id, std::string_view path) {
  const Result<InodeId> directory = directory_at(parent_path(path));
  if (!directory) return contradiction(*trace_, id, directory.error().message);
  auto& cells = directories[*directory].cells;
  auto cell = cells.find(file_name(path));
  if (cell == cells.end()) {
    cell = cells.emplace(file_name(path), static_cast<std::uint32_t>(names.size())).first;
    names.push_back({*directory, cell->first, {NameVersion{}}});
  }
  return Spot{cell->second, names[cell->second].seen()};
}

std::uint32_t Structure::add_version(std::uint32_t cell, const NameVersion& version) {
  names[cell].versions.push_back(version);
  return static_cast<std::uint32_t>(names[cell].versions.size() - 1);
}

Status Structure::apply(OperationId id) {
  const Operation& operation = trace_->operations[id];
  if (operation.kind == OperationKind::node_died) node_died(id);
  if (operation.kind != OperationKind::file) return {};
  switch (operation.op) {
    case FileOp::write:
    case FileOp::sync:
    case FileOp::close:
      if (!files.contains(operation.inode)) return contradiction(*trace_, id, "there is no such file");
      if (operation.op == FileOp::write) {
        if (operation.offset < 0) return contradiction(*trace_, id, "the offset is negative");
        apply_write(id);
      } else {
        files[operation.inode].syncs.push_back({id, operation.error.has_value(), operation.op == FileOp::close});
      }
      return {};
    case FileOp::sync_directory: {
      const Result<InodeId> directory = directory_at(operation.path);
      if (directory) directories[*directory].syncs.push_back({id, operation.error.has_value(), false});
      if (!directory && !operation.error) return contradiction(*trace_, id, directory.error().message);
      return {};
    }
    default: return operation.error ? Status() : apply_to_names(id);
  }
}

Status Structure::apply_to_names(OperationId id) {
  const Operation& operation = trace_->operations[id];
  FD_TRY(const Spot at, spot(id, operation.path));
  const bool makes = operation.op == FileOp::create || operation.op == FileOp::make_directory;
  if (makes && at.inode != no_inode) return contradiction(*trace_, id, "the name is taken");
  if (makes && (operation.inode == no_inode || paths.contains(operation.inode))) {
    return contradiction(*trace_, id, "its inode is not a new one");
  }
  if (!makes && at.inode == no_inode) return contradiction(*trace_, id, "there is nothing under the name");
  switch (operation.op) {
    case FileOp::create:
      files[operation.inode].base = Value::copy_of(std::string_view());
      files[operation.inode].sizes.push_back({});
      break;
    case FileOp::make_directory: directories[operation.inode]; break;
    case FileOp::rename: {
      FD_TRY(const Spot to, spot(id, operation.second));
      if (to.cell == at.cell) return {};
      const std::uint32_t from_version = add_version(at.cell, {.operation = id});
      const std::uint32_t to_version = add_version(to.cell, {.operation = id, .inode = at.inode, .second = true});
      renames.push_back({id, at.cell, from_version, to.cell, to_version});
      return {};
    }
    default: break;
  }
  if (makes) paths.emplace(operation.inode, operation.path);
  add_version(at.cell, {.operation = id, .inode = makes ? operation.inode : no_inode});
  return {};
}

void Structure::apply_write(OperationId id) {
  const Operation& operation = trace_->operations[id];
  FileHistory& file = files[operation.inode];
  WriteItem write{.operation = id,
                  .file = operation.inode,
                  .offset = operation.offset,
                  .bytes = operation.bytes.as_bytes(),
                  .failed = operation.error.has_value()};
  if (write.bytes.size() == 0) return;
  // What only a failed write reached is nobody's promise, so a later one that reaches less has a version of its own;
  // the size that the failed one left may be there behind it all the same.
  const std::int64_t seen = file.size_seen();
  if (write.end() > (write.failed ? seen : file.size_kept())) {
    file.sizes.push_back({.operation = id, .size = write.end(), .failed = write.failed});
    if (seen > write.end()) file.sizes.push_back({.operation = id, .size = seen, .failed = true, .carried = true});
  }
  file.writes.push_back(static_cast<std::uint32_t>(writes.size()));
  writes.push_back(std::move(write));
}

void Structure::node_died(OperationId id) {
  std::set<std::pair<OperationId, bool>> lost;
  for (const LostItem& item : trace_->operations[id].lost) lost.emplace(item.operation, item.second);
  lose_names(id, lost);
  lose_writes(id, lost);
}

void Structure::lose_names(OperationId id, const std::set<std::pair<OperationId, bool>>& lost) {
  const int node = trace_->operations[id].node;
  for (std::uint32_t cell = 0; cell < names.size(); ++cell) {
    std::vector<NameVersion>& versions = names[cell].versions;
    std::uint32_t spared_version = 0;
    for (std::uint32_t v = 1; v < versions.size(); ++v) {
      NameVersion& version = versions[v];
      if (lost.contains({*version.operation, version.second})) version.lost_by = id;
      if (!version.lost_by && node_of(*version.operation) == node) spared_version = v;
    }
    if (spared_version > 0) spared.push_back({id, true, cell, spared_version});
  }
}

void Structure::lose_writes(OperationId id, const std::set<std::pair<OperationId, bool>>& lost) {
  const int node = trace_->operations[id].node;
  for (auto& [inode, file] : files) {
    std::int64_t size = static_cast<std::int64_t>(file.base.size());
    for (const std::uint32_t index : file.writes) {
      WriteItem& write = writes[index];
      if (lost.contains({write.operation, false})) write.lost_by = id;
      if (write.lost_by) continue;
      size = std::max(size, write.end());
      if (node_of(write.operation) == node && !write.failed) spared.push_back({id, false, index, 0});
    }
    for (SizeVersion& version : file.sizes) {
      if (version.operation && lost.contains({*version.operation, false})) version.lost_by = id;
    }
    // Another write that was not lost may reach as far as a lost one did.
    if (size > file.size_seen()) file.sizes.push_back({.operation = id, .size = size});
  }
}

bool promised(const HappensBefore& order, OperationId item, const Sync& sync, std::span<const Sync> syncs) {
  if (sync.failed || !order.before(item, sync.operation)) return false;
  return std::none_of(syncs.begin(), syncs.end(), [&](const Sync& other) {
    return other.failed && !order.before(other.operation, item) && !order.before(sync.operation, other.operation);
  });
}

std::vector<Sync> syncs_of_node(const Structure& structure, std::span<const Sync> syncs, int node) {
  std::vector<Sync> own;
  std::copy_if(syncs.begin(), syncs.end(), std::back_inserter(own),
               [&](const Sync& sync) { return structure.node_of(sync.operation) == node; });
  return own;
}

}  // namespace firedrill::crash

#include "faults/persistence/recorder.h"

#include <algorithm>

#include "engine/base/check.h"
#include "faults/persistence/structure.h"

namespace firedrill::crash {

Recorder::Recorder(std::vector<BaseEntry> base) {
  for (const BaseEntry& entry : base) {
    names_[entry.path] = entry.inode;
    next_inode_ = std::max(next_inode_, entry.inode + 1);
  }
  trace_.base = std::move(base);
}

void Recorder::grow(Clock& clock) const { clock.resize(trace_.programs.size()); }

ProgramId Recorder::program(const Program& program) {
  const std::lock_guard lock(mutex_);
  return enter(program);
}

ProgramId Recorder::enter(const Program& program) {
  const auto [it, added] =
      programs_.emplace(std::tuple(program.attempt, program.rank, program.task), trace_.programs.size());
  if (!added) return it->second;
  trace_.programs.push_back(program);
  known_.push_back({.clock = start_, .told = {}, .stamp = nullptr});
  operations_of_.emplace_back();
  return it->second;
}

void Recorder::attempt_started(int /*attempt*/) {
  const std::lock_guard lock(mutex_);
  start_.clear();
  for (const std::vector<OperationId>& operations : operations_of_) {
    start_.push_back(static_cast<std::uint32_t>(operations.size()));
  }
}

OperationId Recorder::record(ProgramId program, const Position& position, Operation operation) {
  const std::lock_guard lock(mutex_);
  operation.step = position.step;
  operation.phase = position.phase;
  return append(program, std::move(operation));
}

OperationId Recorder::append(ProgramId program, Operation operation) {
  operation.program = program;
  Known& known = known_[program];
  grow(known.clock);
  grow(known.told);
  for (ProgramId other = 0; other < known.clock.size(); ++other) {
    if (other == program || known.clock[other] <= known.told[other]) continue;
    operation.after.push_back(operations_of_[other][known.clock[other] - 1]);
  }
  known.told = known.clock;
  apply(operation);
  const auto id = static_cast<OperationId>(trace_.operations.size());
  trace_.operations.push_back(std::move(operation));
  numbers_.push_back(number_ ? number_() : 0);
  operations_of_[program].push_back(id);
  known.clock[program] = static_cast<std::uint32_t>(operations_of_[program].size());
  known.stamp = nullptr;
  return id;
}

void Recorder::apply(Operation& operation) {
  if (operation.kind != OperationKind::file || operation.error) return;
  switch (operation.op) {
    case FileOp::create:
    case FileOp::make_directory:
      operation.inode = next_inode_++;
      names_[operation.path] = operation.inode;
      break;
    case FileOp::rename:
      operation.inode = find(operation.path);
      move_names(operation.path, operation.second);
      break;
    case FileOp::remove:
      operation.inode = find(operation.path);
      names_.erase(operation.path);
      break;
    default: break;
  }
}

InodeId Recorder::find(std::string_view path) const {
  const auto found = names_.find(path);
  return found == names_.end() ? no_inode : found->second;
}

void Recorder::move_names(const std::string& from, const std::string& to) {
  if (from == to) return;
  std::vector<std::pair<std::string, InodeId>> moved;
  if (const auto name = names_.find(from); name != names_.end()) {
    moved.emplace_back(to, name->second);
    names_.erase(name);
  }
  const std::string below = from + "/";
  for (auto it = names_.lower_bound(below); it != names_.end() && it->first.starts_with(below);) {
    moved.emplace_back(to + it->first.substr(from.size()), it->second);
    it = names_.erase(it);
  }
  for (auto& [path, inode] : moved) names_[path] = inode;
}

Recorder::Stamp Recorder::stamp(ProgramId program) {
  const std::lock_guard lock(mutex_);
  return stamp_of(program);
}

Recorder::Stamp Recorder::stamp_of(ProgramId program) {
  Known& known = known_[program];
  if (!known.stamp) known.stamp = std::make_shared<const Clock>(known.clock);
  return known.stamp;
}

void Recorder::learn(ProgramId program, const Stamp& stamp) {
  const std::lock_guard lock(mutex_);
  join(program, stamp);
}

void Recorder::join(ProgramId program, const Stamp& stamp) {
  Known& known = known_[program];
  if (!stamp || stamp == known.stamp) return;
  if (known.clock.size() < stamp->size()) grow(known.clock);
  for (std::size_t other = 0; other < stamp->size(); ++other) {
    if ((*stamp)[other] <= known.clock[other]) continue;
    known.clock[other] = (*stamp)[other];
    known.stamp = nullptr;
  }
}

void Recorder::send(int attempt, int from, int to, Tag tag, ProgramId program) {
  const std::lock_guard lock(mutex_);
  wires_[Wire(attempt, from, to, tag)].push_back(stamp_of(program));
}

void Recorder::take(int attempt, int from, int to, Tag tag, ProgramId program) {
  const std::lock_guard lock(mutex_);
  const auto wire = wires_.find(Wire(attempt, from, to, tag));
  if (wire == wires_.end()) return;
  join(program, wire->second.front());
  wire->second.pop_front();
  if (wire->second.empty()) wires_.erase(wire);
}

InodeId Recorder::inode_of(std::string_view path) const {
  const std::lock_guard lock(mutex_);
  return find(path);
}

LostItem Recorder::find_item(const UnsyncedItem& item) const {
  for (auto id = static_cast<OperationId>(numbers_.size()); id-- > 0;) {
    const Operation& operation = trace_.operations[id];
    if (numbers_[id] != item.operation || operation.kind != OperationKind::file || operation.error) continue;
    if (operation.op == FileOp::sync || operation.op == FileOp::sync_directory || operation.op == FileOp::close)
      continue;
    return {id, operation.op == FileOp::rename && !item.removal};
  }
  FD_CHECK(false, "no recorded operation has the number {} of what was lost at {}", item.operation, item.path);
}

void Recorder::node_died(int node, std::span<const UnsyncedItem> lost) {
  const std::lock_guard lock(mutex_);
  Operation operation;
  operation.kind = OperationKind::node_died;
  operation.node = node;
  for (const UnsyncedItem& item : lost) operation.lost.push_back(find_item(item));
  int attempt = 0;
  for (const Program& program : trace_.programs) attempt = std::max(attempt, program.attempt);
  const ProgramId world = enter({.attempt = attempt, .rank = -1, .node = -1});
  grow(known_[world].clock);
  for (ProgramId program = 0; program < trace_.programs.size(); ++program) {
    if (trace_.programs[program].node != node) continue;
    known_[world].clock[program] = static_cast<std::uint32_t>(operations_of_[program].size());
  }
  append(world, std::move(operation));
  see_what_is_left();
}

// After a loss the names are what the trace says.
void Recorder::see_what_is_left() {
  const Result<Structure> structure = Structure::of(trace_);
  FD_CHECK(structure.ok(), "{}", structure.error().message);
  names_.clear();
  std::vector<std::pair<InodeId, std::string>> directories = {{root_inode, ""}};
  for (std::size_t i = 0; i < directories.size(); ++i) {
    const auto [directory, path] = directories[i];
    for (const auto& [name, cell] : structure->directories.at(directory).cells) {
      const InodeId inode = structure->names[cell].seen();
      if (inode == no_inode) continue;
      const std::string full = path.empty() ? name : path + "/" + name;
      names_[full] = inode;
      if (structure->directories.contains(inode)) directories.emplace_back(inode, full);
    }
  }
}

Trace Recorder::trace() const {
  const std::lock_guard lock(mutex_);
  return trace_;
}

std::size_t Recorder::operations() const {
  const std::lock_guard lock(mutex_);
  return trace_.operations.size();
}

}  // namespace firedrill::crash

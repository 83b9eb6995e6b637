#include "faults/persistence/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/base/check.h"

namespace firedrill::crash {

namespace {

constexpr std::string_view kind_names[] = {"file", "acknowledged", "committed", "node_died"};

// What the names and files tell about the order, while the operations are gone through in the recorded one.
class Conflicts {
 public:
  // Calls `edge` with each operation that `operation` must come after.
  template <class Edge>
  void visit(const Operation& operation, OperationId id, const Edge& edge) {
    if (operation.kind == OperationKind::node_died) died(edge);
    if (operation.kind != OperationKind::file || operation.path.empty()) return;
    if (operation.op == FileOp::write || operation.op == FileOp::sync || operation.op == FileOp::close) {
      if (const auto made = made_.find(operation.inode); made != made_.end()) edge(made->second);
      if (operation.op != FileOp::write) return;
      if (const auto last = written_.find(operation.inode); last != written_.end()) edge(last->second);
      written_[operation.inode] = id;
      return;
    }
    touch(operation.path, edge);
    if (operation.op == FileOp::sync_directory || operation.error) return;
    if (operation.op == FileOp::rename) touch(operation.second, edge);
    if (operation.op == FileOp::rename || operation.op == FileOp::remove) below(operation.path, edge);
    changed_[operation.path] = id;
    if (operation.op == FileOp::rename) changed_[operation.second] = id;
    if (operation.op == FileOp::create) made_[operation.inode] = id;
  }

 private:
  // The name itself and all directories above it.
  template <class Edge>
  void touch(std::string_view path, const Edge& edge) {
    for (; !path.empty(); path = parent_path(path)) {
      if (const auto last = changed_.find(path); last != changed_.end()) edge(last->second);
    }
  }
  template <class Edge>
  void below(const std::string& path, const Edge& edge) {
    const std::string prefix = path + "/";
    for (auto it = changed_.lower_bound(prefix); it != changed_.end() && it->first.starts_with(prefix); ++it) {
      edge(it->second);
    }
  }
  template <class Edge>
  void died(const Edge& edge) {
    for (const auto& [path, id] : changed_) edge(id);
    for (const auto& [file, id] : written_) edge(id);
  }

  std::map<std::string, OperationId, std::less<>> changed_;  // the last change of each name
  std::map<InodeId, OperationId> made_;
  std::map<InodeId, OperationId> written_;
};

}  // namespace

std::string_view to_string(OperationKind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

std::optional<OperationKind> operation_kind_from(std::string_view name) {
  const auto* found = std::find(std::begin(kind_names), std::end(kind_names), name);
  if (found == std::end(kind_names)) return std::nullopt;
  return static_cast<OperationKind>(found - std::begin(kind_names));
}

bool is_kept(FileOp op) {
  switch (op) {
    case FileOp::create:
    case FileOp::write:
    case FileOp::sync:
    case FileOp::close:
    case FileOp::rename:
    case FileOp::remove:
    case FileOp::make_directory:
    case FileOp::sync_directory: return true;
    default: return false;
  }
}

Result<std::vector<BaseEntry>> read_base(FileSystem& files) {
  std::vector<BaseEntry> base;
  std::vector<std::string> directories = {""};
  for (std::size_t i = 0; i < directories.size(); ++i) {
    const std::string directory = directories[i];
    FD_TRY(const std::vector<std::string> names, files.list(directory));
    for (const std::string& name : names) {
      BaseEntry entry;
      entry.path = directory.empty() ? name : directory + "/" + name;
      entry.inode = root_inode + 1 + static_cast<InodeId>(base.size());
      FD_TRY(const FileInfo info, files.stat(entry.path));
      entry.kind = info.kind;
      if (info.kind == FileKind::directory) {
        directories.push_back(entry.path);
      } else {
        FD_TRY(const std::unique_ptr<File> file, files.open(entry.path));
        FD_TRY(entry.bytes, file->read(0, info.size));
      }
      base.push_back(std::move(entry));
    }
  }
  return base;
}

std::vector<OperationId> operations_before_attempt(const Trace& trace, int attempt) {
  std::vector<OperationId> before;
  for (OperationId id = 0; id < trace.operations.size(); ++id) {
    const Program& program = trace.programs[trace.operations[id].program];
    if (program.attempt < attempt) before.push_back(id);
  }
  return before;
}

std::string describe(const Trace& trace, OperationId id) {
  const Operation& operation = trace.operations[id];
  const Program& program = trace.programs[operation.program];
  std::string who = program.rank < 0 ? "the world" : fmt::format("rank {}", program.rank);
  if (program.task > 0) who += fmt::format(" (task {})", program.task);
  if (program.attempt > 1) who += fmt::format(" of attempt {}", program.attempt);
  const std::string failed = operation.error ? fmt::format(" (failed: {})", to_string(*operation.error)) : "";
  switch (operation.kind) {
    case OperationKind::acknowledged:
      return fmt::format("{}'s acknowledgement of {}", who, to_string(operation.checkpoint));
    case OperationKind::committed: return fmt::format("{}'s commit of {}", who, to_string(operation.checkpoint));
    case OperationKind::node_died: return fmt::format("the death of node {}", operation.node);
    case OperationKind::file: break;
  }
  const std::string path = operation.path.empty() ? "the root" : operation.path;
  if (operation.op == FileOp::write) {
    return fmt::format("{}'s write of {} bytes at {} of {}{}", who, operation.bytes.size(), operation.offset, path,
                       failed);
  }
  if (operation.op == FileOp::rename) {
    return fmt::format("{}'s rename of {} to {}{}", who, path, operation.second, failed);
  }
  return fmt::format("{}'s {} of {}{}", who, to_string(operation.op), path, failed);
}

HappensBefore::HappensBefore(const Trace& trace)
    : size_(trace.operations.size()), words_((size_ + 63) / 64), rows_(size_ * words_) {
  std::vector<std::optional<OperationId>> last(trace.programs.size());
  Conflicts conflicts;
  for (OperationId id = 0; id < size_; ++id) {
    const Operation& operation = trace.operations[id];
    std::uint64_t* row = rows_.data() + id * words_;
    const auto edge = [&](OperationId earlier) {
      FD_CHECK(earlier < id, "operation {} is said to come after {}", id, earlier);
      if ((row[earlier / 64] >> (earlier % 64)) & 1U) return;
      const std::uint64_t* past = rows_.data() + earlier * words_;
      for (std::size_t w = 0; w < words_; ++w) row[w] |= past[w];
      row[earlier / 64] |= std::uint64_t{1} << (earlier % 64);
    };
    if (last[operation.program]) edge(*last[operation.program]);
    last[operation.program] = id;
    for (const OperationId earlier : operation.after) edge(earlier);
    conflicts.visit(operation, id, edge);
  }
}

}  // namespace firedrill::crash

// For tests: traces written down in a few lines. Programs are (rank, node), made when first named; files are named by
// their paths.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "faults/persistence/trace.h"

namespace firedrill::crash {

class TraceBuilder {
 public:
  // A directory of the base ("a/b") with its parents, or a file.
  TraceBuilder& base(std::string_view path) {
    add_base(path, FileKind::directory, {});
    return *this;
  }
  TraceBuilder& base(std::string_view path, const Value& bytes) {
    add_base(path, FileKind::file, bytes);
    return *this;
  }

  // Speaks for this rank from now on; ranks on one node share it.
  TraceBuilder& rank(int rank, int node = 0, int attempt = 1) {
    const Program program{.attempt = attempt, .rank = rank, .node = node};
    for (program_ = 0; program_ < trace_.programs.size(); ++program_) {
      if (trace_.programs[program_] == program) return *this;
    }
    trace_.programs.push_back(program);
    return *this;
  }
  // The next operation comes after that one, as by a message.
  TraceBuilder& after(OperationId operation) {
    after_.push_back(operation);
    return *this;
  }
  // The next operation fails.
  TraceBuilder& failing(Code code = Code::io_error) {
    error_ = code;
    return *this;
  }

  OperationId create(std::string_view path) { return add_named(FileOp::create, path, next_inode_++); }
  OperationId make_directory(std::string_view path) { return add_named(FileOp::make_directory, path, next_inode_++); }
  OperationId remove(std::string_view path) {
    const OperationId id = add_named(FileOp::remove, path, inode(path));
    if (!failed(id)) names_.erase(names_.find(path));
    return id;
  }
  OperationId rename(std::string_view from, std::string_view to) {
    Operation operation = start(FileOp::rename, from, inode(from));
    operation.second = to;
    const OperationId id = add(std::move(operation));
    if (!failed(id)) {
      names_[std::string(to)] = inode(from);
      names_.erase(names_.find(from));
    }
    return id;
  }
  OperationId write(std::string_view path, std::int64_t offset, const Value& bytes) {
    Operation operation = start(FileOp::write, path, inode(path));
    operation.offset = offset;
    operation.bytes = bytes;
    return add(std::move(operation));
  }
  OperationId sync(std::string_view path) { return add(start(FileOp::sync, path, inode(path))); }
  OperationId close(std::string_view path) { return add(start(FileOp::close, path, inode(path))); }
  OperationId sync_directory(std::string_view path) { return add(start(FileOp::sync_directory, path, no_inode)); }
  OperationId acknowledge(std::int64_t step) { return add_event(OperationKind::acknowledged, step); }
  OperationId commit(std::int64_t step) { return add_event(OperationKind::committed, step); }
  OperationId node_died(int node, std::vector<LostItem> lost) {
    Operation operation = start(FileOp::create, "", no_inode);
    operation.kind = OperationKind::node_died;
    operation.node = node;
    operation.lost = std::move(lost);
    return add(std::move(operation));
  }

  InodeId inode(std::string_view path) const {
    const auto found = names_.find(path);
    FD_CHECK(found != names_.end(), "there is no {}", path);
    return found->second;
  }
  bool holds(std::string_view path) const { return names_.contains(path); }
  const Trace& trace() const { return trace_; }

 private:
  void add_base(std::string_view path, FileKind kind, const Value& bytes) {
    if (const std::string_view parent = parent_path(path); !parent.empty() && !names_.contains(parent)) base(parent);
    names_[std::string(path)] = next_inode_;
    trace_.base.push_back({std::string(path), kind, next_inode_++, bytes});
  }
  Operation start(FileOp op, std::string_view path, InodeId inode) {
    Operation operation;
    operation.program = program_;
    operation.op = op;
    operation.path = path;
    operation.inode = inode;
    operation.after = std::move(after_);
    operation.error = error_;
    after_.clear();
    error_.reset();
    return operation;
  }
  OperationId add(Operation operation) {
    trace_.operations.push_back(std::move(operation));
    return static_cast<OperationId>(trace_.operations.size() - 1);
  }
  OperationId add_named(FileOp op, std::string_view path, InodeId inode) {
    const OperationId id = add(start(op, path, inode));
    if (!failed(id) && op != FileOp::remove) names_[std::string(path)] = inode;
    return id;
  }
  OperationId add_event(OperationKind kind, std::int64_t step) {
    Operation operation = start(FileOp::create, "", no_inode);
    operation.kind = kind;
    operation.step = step;
    operation.checkpoint = {.step = step, .attempt = 1, .trial = 1};
    return add(std::move(operation));
  }
  bool failed(OperationId id) const { return trace_.operations[id].error.has_value(); }

  Trace trace_;
  std::map<std::string, InodeId, std::less<>> names_;
  InodeId next_inode_ = root_inode + 1;
  ProgramId program_ = 0;
  std::vector<OperationId> after_;
  std::optional<Code> error_;
};

// `size` bytes that are not zero, different for each seed.
inline Value pattern(std::int64_t size, int seed) {
  MutableValue value(DType::u8, Shape{size});
  int i = 0;
  for (std::byte& byte : value.bytes()) byte = static_cast<std::byte>(1 + (seed * 31 + i++ * 7) % 251);
  return std::move(value).freeze();
}

}  // namespace firedrill::crash

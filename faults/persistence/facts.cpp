#include "faults/persistence/facts.h"

namespace firedrill::crash {

Facts::Facts(const Structure& structure)
    : order_(structure.order()), operations_(static_cast<FactId>(structure.trace().operations.size())) {
  FactId next = 2 * operations_;
  for (const NameCell& cell : structure.names) {
    name_.push_back(next);
    next += static_cast<FactId>(cell.versions.size() - 1);
  }
  for (const auto& [inode, file] : structure.files) {
    size_.emplace(inode, next);
    next += static_cast<FactId>(file.sizes.size() - 1);
  }
  whole_ = next;
  count_ = next + structure.writes.size();
  words_ = (count_ + 63) / 64;
  implied_.resize(count_);
  add_common_rules(structure);
  add_deaths(structure);
}

void Facts::implies(FactId fact, FactId other) { implied_[fact].push_back(other); }

void Facts::add_common_rules(const Structure& structure) {
  for (OperationId id = 0; id < operations_; ++id) implies(journaled(id), issued(id));
  for (std::uint32_t cell = 0; cell < structure.names.size(); ++cell) {
    const std::vector<NameVersion>& versions = structure.names[cell].versions;
    for (std::uint32_t v = 1; v < versions.size(); ++v) {
      implies(named(cell, v), issued(*versions[v].operation));
      if (v > 1) implies(named(cell, v), named(cell, v - 1));
    }
  }
  for (const auto& [inode, file] : structure.files) {
    for (std::uint32_t v = 1; v < file.sizes.size(); ++v) {
      implies(sized(inode, v), issued(*file.sizes[v].operation));
      if (v > 1) implies(sized(inode, v), sized(inode, v - 1));
    }
  }
  for (std::uint32_t write = 0; write < structure.writes.size(); ++write) {
    implies(whole(write), issued(structure.writes[write].operation));
  }
}

void Facts::add_deaths(const Structure& structure) {
  for (const Spared& item : structure.spared) {
    if (item.is_name) {
      implies(issued(item.death), named(item.index, item.version));
      continue;
    }
    implies(issued(item.death), whole(item.index));
    const WriteItem& write = structure.writes[item.index];
    const FileHistory& file = structure.files.at(write.file);
    for (std::uint32_t v = 1; v < file.sizes.size(); ++v) {
      if (file.sizes[v].operation == write.operation && !file.sizes[v].carried)
        implies(issued(item.death), sized(write.file, v));
    }
  }
}

void Facts::close_over(FactId fact, FactId other, bool& changed) {
  std::uint64_t* row = rows_.data() + fact * words_;
  const std::uint64_t* more = rows_.data() + other * words_;
  for (std::size_t w = 0; w < words_; ++w) {
    changed |= (more[w] & ~row[w]) != 0;
    row[w] |= more[w];
  }
}

void Facts::close() {
  rows_.assign(count_ * words_, 0);
  for (FactId fact = 0; fact < count_; ++fact) rows_[fact * words_ + fact / 64] |= std::uint64_t{1} << (fact % 64);
  // Operations are the first facts, so that the order's rows are the beginnings of theirs. What an operation brings
  // beyond that comes from those before it that imply something.
  std::vector<OperationId> sources;
  for (OperationId id = 0; id < operations_; ++id) {
    const std::span<const std::uint64_t> past = order_.past(id);
    for (std::size_t w = 0; w < past.size(); ++w) rows_[id * words_ + w] |= past[w];
    for (const OperationId source : sources) {
      if (order_.before(source, id)) implies(id, source);
    }
    if (!implied_[id].empty()) sources.push_back(id);
  }
  // Most implications lead to facts of earlier operations, whose rows are ready; a few rounds settle the rest.
  for (bool changed = true; changed;) {
    changed = false;
    for (FactId fact = 0; fact < count_; ++fact) {
      for (const FactId other : implied_[fact]) close_over(fact, other, changed);
    }
  }
}

}  // namespace firedrill::crash

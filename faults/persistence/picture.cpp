// What findings say in words: what a value means, the shortest way to a bad state, and what became of each operation.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "faults/persistence/crash_data.h"
#include "faults/persistence/crash_space.h"

namespace firedrill::crash {

namespace {

std::string in_words(const FateOfWrite& fate) {
  switch (fate.fate) {
    case WriteFate::whole: return "durable";
    case WriteFate::old: return "lost";
    case WriteFate::zeros: return "zeros";
    case WriteFate::torn_old: return fmt::format("torn at sector {}", fate.sector);
    case WriteFate::torn_zeros: return fmt::format("torn at sector {} (zeros)", fate.sector);
  }
  return {};
}

std::string path_of(const SpaceData& data, InodeId inode) {
  const auto found = data.structure->paths.find(inode);
  const std::string path = found == data.structure->paths.end() ? std::string() : found->second;
  return path.empty() ? "the root" : path;
}

std::string path_of(const SpaceData& data, const Cell& cell) {
  if (cell.kind != CellKind::name) return path_of(data, cell.inode);
  return cell.inode == root_inode ? cell.name : path_of(data, cell.inode) + "/" + cell.name;
}

// Fates by operation: of names and of writes, from the windows that are chosen.
class Fates {
 public:
  Fates(const SpaceData& data, std::span<const std::pair<CellId, const Window*>> chosen) : data_(data) {
    for (const auto& [cell, window] : chosen) {
      const Cell& about = data.cells[cell];
      if (about.kind == CellKind::name) versions_[data.name_index[cell]] = window->version;
      if (about.kind == CellKind::size) sizes_[about.inode] = window->version;
      if (about.kind != CellKind::content) continue;
      sizes_[about.inode] = window->version;
      read_.insert(about.inode);
      for (const FateOfWrite& fate : window->fates)
        writes_[data.structure->writes[fate.write].operation] = in_words(fate);
    }
    const std::vector<NameCell>& names = data.structure->names;
    for (std::uint32_t cell = 0; cell < names.size(); ++cell) {
      for (std::uint32_t v = 1; v < names[cell].versions.size(); ++v) {
        const NameVersion& version = names[cell].versions[v];
        made_[*version.operation].push_back({cell, v, version.second});
      }
    }
  }

  std::string of(OperationId id) const {
    const Operation& operation = data_.trace.operations[id];
    if (operation.kind != OperationKind::file) return "in the cut";
    if (operation.error) return "failed";
    switch (operation.op) {
      case FileOp::sync:
      case FileOp::close:
      case FileOp::sync_directory: return "returned";
      case FileOp::write: return of_write(id, operation);
      default: return of_names(id);
    }
  }

 private:
  struct Made {
    std::uint32_t cell;
    std::uint32_t version;
    bool second;
  };

  std::string of_write(OperationId id, const Operation& operation) const {
    const auto fate = writes_.find(id);
    if (fate != writes_.end()) return fate->second;
    if (read_.contains(operation.inode)) return "lost (behind the file's end)";
    const auto size = sizes_.find(operation.inode);
    if (size == sizes_.end()) return "not looked at";
    const std::vector<SizeVersion>& sizes = data_.structure->files.at(operation.inode).sizes;
    for (std::uint32_t v = 1; v < sizes.size(); ++v) {
      if (sizes[v].operation == id) return v <= size->second ? "size durable" : "size lost";
    }
    return "not looked at";
  }

  std::string of_names(OperationId id) const {
    const auto made = made_.find(id);
    if (made == made_.end()) return "nothing to do";
    std::vector<std::string> words;
    for (const Made& name : made->second) {
      const auto version = versions_.find(name.cell);
      const bool known = version != versions_.end();
      words.emplace_back(!known ? "not looked at" : version->second >= name.version ? "durable" : "lost");
    }
    if (words.size() == 2 && words[0] != words[1]) {
      const std::size_t second = made->second[0].second ? 0 : 1;
      return fmt::format("old name's removal {}, new name {}", words[1 - second], words[second]);
    }
    return words.front();
  }

  const SpaceData& data_;
  std::map<std::uint32_t, std::uint32_t> versions_;  // by index in Structure::names
  std::map<InodeId, std::uint32_t> sizes_;
  std::set<InodeId> read_;
  std::map<OperationId, std::string> writes_;
  std::map<OperationId, std::vector<Made>> made_;
};

}  // namespace

std::string CrashSpace::describe(CellId id, ValueIndex index) const {
  const Cell& cell = data_->cells[id];
  const CellValue& value = cell.values[index];
  const std::string path = path_of(*data_, cell);
  if (cell.kind == CellKind::size) return fmt::format("{} has {} bytes", path, value.size);
  const Window& window = data_->window(data_->windows(id, index).first);
  if (cell.kind == CellKind::name) {
    if (value.inode == no_inode) return fmt::format("{} is absent", path);
    const NameVersion& version = data_->structure->names[data_->name_index[id]].versions[window.version];
    const std::string by = version.operation ? crash::describe(data_->trace, *version.operation) : "the base";
    return fmt::format("{} is there (by {})", path, by);
  }
  if (data_->structure->files.at(cell.inode).writes.empty()) return fmt::format("{} holds {} bytes", path, value.size);
  std::string fates;
  for (const FateOfWrite& fate : window.fates) fates += (fates.empty() ? "" : ", ") + in_words(fate);
  if (fates.empty()) fates = value.size == 0 ? "empty" : "as before";
  return fmt::format("{} ({} bytes): {}", path, value.size, fates);
}

std::vector<OperationId> Partial::shortest_cut() {
  const std::size_t words = (data_.trace.operations.size() + 63) / 64;
  const auto cut_of = [&](const std::vector<std::uint32_t>& windows) {
    std::vector<std::uint64_t> cut(words);
    const auto add = [&](std::span<const std::uint64_t> facts) {
      for (std::size_t w = 0; w < words; ++w) cut[w] |= facts[w];
    };
    for (const OperationId id : data_.options.certain) add(data_.facts->closure(data_.facts->issued(id)));
    for (std::size_t level = 0; level < depth_; ++level) add(data_.window(windows[level]).must);
    if (const std::size_t rest = data_.trace.operations.size() % 64; rest != 0) {
      cut[words - 1] &= (std::uint64_t{1} << rest) - 1;
    }
    return cut;
  };
  const auto size_of = [](const std::vector<std::uint64_t>& cut) {
    std::size_t size = 0;
    for (const std::uint64_t word : cut) size += static_cast<std::size_t>(std::popcount(word));
    return size;
  };
  // All choices of windows, unless there are very many.
  std::vector<std::uint32_t> best = chosen_;
  std::size_t best_size = size_of(cut_of(best));
  std::size_t budget = 4096;
  const auto visit = [&](const auto& self, std::size_t n) -> void {
    if (budget == 0) return;
    if (n == open_.size()) {
      --budget;
      std::vector<std::uint32_t> windows = chosen_;
      for (std::size_t i = 0; i < n; ++i) windows[open_[i]] = trial_[i];
      const std::size_t size = size_of(cut_of(windows));
      if (size < best_size) {
        best_size = size;
        best = windows;
      }
      return;
    }
    const CellId cell = cells_[open_[n]];
    const auto [first, last] = data_.windows(cell, static_cast<ValueIndex>(values_[cell]));
    for (std::uint32_t window = first; window < last; ++window) {
      if (!extend_trial(n, window)) continue;
      self(self, n + 1);
    }
  };
  if (!open_.empty()) {
    start_trial();
    visit(visit, 0);
    for (const std::uint32_t level : open_) chosen_[level] = best[level];
    rebuild();
  }
  const std::vector<std::uint64_t> cut = cut_of(best);
  std::vector<OperationId> operations;
  for (OperationId id = 0; id < data_.trace.operations.size(); ++id) {
    if ((cut[id / 64] >> (id % 64)) & 1U) operations.push_back(id);
  }
  return operations;
}

std::vector<Fate> Partial::picture() {
  const std::vector<OperationId> cut = shortest_cut();
  std::vector<std::pair<CellId, const Window*>> chosen;
  for (std::size_t level = 0; level < depth_; ++level)
    chosen.emplace_back(cells_[level], &data_.window(chosen_[level]));
  const Fates fates(data_, chosen);
  std::vector<Fate> picture;
  picture.reserve(cut.size());
  for (const OperationId id : cut) picture.push_back({id, fates.of(id)});
  return picture;
}

}  // namespace firedrill::crash

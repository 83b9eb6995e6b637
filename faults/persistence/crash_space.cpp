#include "faults/persistence/crash_space.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/check.h"
#include "faults/persistence/crash_data.h"
#include "faults/persistence/rules.h"

namespace firedrill::crash {

Status SpaceData::fill() {
  FD_TRY(Structure built, Structure::of(trace));
  structure.emplace(std::move(built));
  facts.emplace(*structure);
  add_rules(*structure, options.profile, *facts);
  facts->close();
  std::vector<std::uint64_t> all_certain(facts->words());
  for (const OperationId operation : options.certain) {
    FD_CHECK(operation < trace.operations.size(), "operation {} of {}", operation, trace.operations.size());
    const std::span<const std::uint64_t> row = facts->closure(facts->issued(operation));
    for (std::size_t w = 0; w < row.size(); ++w) all_certain[w] |= row[w];
  }
  const Drafter drafter(*structure, *facts, options, all_certain);
  std::vector<CellDraft> drafts;
  FD_TRY_VOID(add_cells(drafter, drafts));
  thin(drafts);
  append(certain, all_certain);
  add_events();
  return {};
}

Status SpaceData::add_cells(const Drafter& drafter, std::vector<CellDraft>& drafts) {
  InodeId last = root_inode;
  if (!structure->files.empty()) last = std::max(last, structure->files.rbegin()->first);
  last = std::max(last, structure->directories.rbegin()->first);
  kinds.assign(last + 1, FileKind::directory);
  size_cells.assign(last + 1, 0);
  content_cells.assign(last + 1, 0);
  for (const auto& [inode, directory] : structure->directories) {
    std::vector<CellId>& ids = directories[inode];
    for (const auto& [name, index] : directory.cells) {
      ids.push_back(static_cast<CellId>(drafts.size()));
      drafts.push_back(drafter.name(index));
      name_index.push_back(index);
    }
  }
  for (const auto& [inode, file] : structure->files) {
    kinds[inode] = FileKind::file;
    size_cells[inode] = static_cast<CellId>(drafts.size());
    drafts.push_back(drafter.size(inode));
    content_cells[inode] = static_cast<CellId>(drafts.size());
    FD_TRY(CellDraft content, drafter.content(inode));
    drafts.push_back(std::move(content));
    name_index.resize(drafts.size());
  }
  return {};
}

void SpaceData::append(std::vector<std::uint64_t>& rows, std::span<const std::uint64_t> full) const {
  const std::size_t start = rows.size();
  rows.resize(start + words);
  for (std::size_t bit = 0; bit < kept_.size(); ++bit) {
    const FactId fact = kept_[bit];
    if ((full[fact / 64] >> (fact % 64)) & 1U) rows[start + bit / 64] |= std::uint64_t{1} << (bit % 64);
  }
}

void SpaceData::thin(std::vector<CellDraft>& drafts) {
  std::vector<std::uint64_t> forbidden(facts->words());
  for (const CellDraft& draft : drafts) {
    for (const std::vector<Window>& windows : draft.windows) {
      for (const Window& window : windows) {
        for (std::size_t w = 0; w < forbidden.size(); ++w) forbidden[w] |= window.must_not[w];
      }
    }
  }
  for (FactId fact = 0; fact < facts->count(); ++fact) {
    if ((forbidden[fact / 64] >> (fact % 64)) & 1U) kept_.push_back(fact);
  }
  words = std::max<std::size_t>(1, (kept_.size() + 63) / 64);
  for (CellDraft& draft : drafts) {
    first_value_.push_back(static_cast<std::uint32_t>(first_window_.size()));
    for (std::vector<Window>& windows : draft.windows) {
      first_window_.push_back(static_cast<WindowId>(windows_.size()));
      for (Window& window : windows) {
        append(must_, window.must);
        append(must_not_, window.must_not);
        windows_.push_back(std::move(window));
      }
    }
    cells.push_back(std::move(draft.cell));
  }
  first_window_.push_back(static_cast<WindowId>(windows_.size()));
  for (OperationId id = 0; id < trace.operations.size(); ++id) append(issued_, facts->closure(facts->issued(id)));
}

void SpaceData::add_events() {
  for (OperationId id = 0; id < trace.operations.size(); ++id) {
    const OperationKind kind = trace.operations[id].kind;
    if (kind == OperationKind::acknowledged) acknowledgements.push_back(id);
    if (kind == OperationKind::committed) commits.push_back(id);
  }
  const auto newer = [&](OperationId a, OperationId b) {
    return trace.operations[a].checkpoint > trace.operations[b].checkpoint;
  };
  acknowledgements_newest_first = acknowledgements;
  std::stable_sort(acknowledgements_newest_first.begin(), acknowledgements_newest_first.end(), newer);
  commits_newest_first = commits;
  std::stable_sort(commits_newest_first.begin(), commits_newest_first.end(), newer);
}

CrashSpace::CrashSpace(std::unique_ptr<SpaceData> data) : data_(std::move(data)) {}
CrashSpace::~CrashSpace() = default;

Result<std::unique_ptr<CrashSpace>> CrashSpace::build(const Trace& trace, const SpaceOptions& options) {
  auto data = std::make_unique<SpaceData>();
  data->trace = trace;
  data->options = options;
  FD_TRY_VOID(data->fill());
  return std::unique_ptr<CrashSpace>(new CrashSpace(std::move(data)));
}

const Trace& CrashSpace::trace() const { return data_->trace; }
const SpaceOptions& CrashSpace::options() const { return data_->options; }
FileKind CrashSpace::kind(InodeId inode) const { return data_->kinds[inode]; }
std::size_t CrashSpace::inode_count() const { return data_->kinds.size(); }
std::size_t CrashSpace::cell_count() const { return data_->cells.size(); }
const Cell& CrashSpace::cell(CellId cell) const { return data_->cells[cell]; }

std::span<const CellId> CrashSpace::names(InodeId directory) const { return data_->directories.at(directory); }

std::optional<CellId> CrashSpace::name_cell(InodeId directory, std::string_view name) const {
  const std::span<const CellId> ids = names(directory);
  const auto found = std::lower_bound(
      ids.begin(), ids.end(), name, [&](CellId id, std::string_view wanted) { return data_->cells[id].name < wanted; });
  if (found == ids.end() || data_->cells[*found].name != name) return std::nullopt;
  return *found;
}

CellId CrashSpace::size_cell(InodeId file) const { return data_->size_cells[file]; }
CellId CrashSpace::content_cell(InodeId file) const { return data_->content_cells[file]; }
std::span<const OperationId> CrashSpace::acknowledgements() const { return data_->acknowledgements; }
std::span<const OperationId> CrashSpace::commits() const { return data_->commits; }

}  // namespace firedrill::crash

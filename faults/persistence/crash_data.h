// SpaceData: a CrashSpace inside. Facts are thinned to those that some window forbids, since no other can be the reason
// of a conflict; what is left is a few words per window.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "faults/persistence/contents.h"
#include "faults/persistence/crash_space.h"
#include "faults/persistence/facts.h"
#include "faults/persistence/structure.h"

namespace firedrill::crash {

class SpaceData {
 public:
  using WindowId = std::uint32_t;

  Trace trace;
  SpaceOptions options;
  std::optional<Structure> structure;  // refers to `trace`
  std::optional<Facts> facts;

  std::vector<Cell> cells;
  std::vector<FileKind> kinds;  // by inode
  std::map<InodeId, std::vector<CellId>> directories;
  std::vector<CellId> size_cells;  // by inode; files only
  std::vector<CellId> content_cells;
  std::vector<std::uint32_t> name_index;  // by cell: index into Structure::names
  std::vector<OperationId> acknowledgements;
  std::vector<OperationId> commits;
  std::vector<OperationId> acknowledgements_newest_first;
  std::vector<OperationId> commits_newest_first;

  std::size_t words = 0;               // of a thinned row
  std::vector<std::uint64_t> certain;  // thinned

  // Windows of a value: a range of window numbers.
  std::pair<WindowId, WindowId> windows(CellId cell, ValueIndex value) const {
    const std::uint32_t index = first_value_[cell] + value;
    return {first_window_[index], first_window_[index + 1]};
  }
  const std::uint64_t* must(WindowId window) const { return must_.data() + window * words; }
  const std::uint64_t* must_not(WindowId window) const { return must_not_.data() + window * words; }
  // What "the operation is in the cut" brings with it.
  const std::uint64_t* issued(OperationId operation) const { return issued_.data() + operation * words; }
  const Window& window(WindowId window) const { return windows_[window]; }

  Status fill();

 private:
  Status add_cells(const Drafter& drafter, std::vector<CellDraft>& drafts);
  void add_events();
  void thin(std::vector<CellDraft>& drafts);
  void append(std::vector<std::uint64_t>& rows, std::span<const std::uint64_t> full) const;

  std::vector<FactId> kept_;  // facts that are bits of the thinned rows
  std::vector<std::uint32_t> first_value_;
  std::vector<WindowId> first_window_;
  std::vector<std::uint64_t> must_;
  std::vector<std::uint64_t> must_not_;
  std::vector<std::uint64_t> issued_;
  std::vector<Window> windows_;
};

}  // namespace firedrill::crash

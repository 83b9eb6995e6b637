// For tests: the legal contents of a trace as people would write them: what each path holds.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "faults/persistence/test_walk.h"

namespace firedrill::crash {

// By path: "directory", or of a file its bytes with runs of one letter shortened ("A512 0512": 512 of A, 512 zeros).
using View = std::map<std::string, std::string>;

inline std::string runs_of(const Value& bytes) {
  std::string text;
  const std::string_view all = bytes.text();
  for (std::size_t i = 0; i < all.size();) {
    std::size_t end = i;
    while (end < all.size() && all[end] == all[i]) ++end;
    text += (text.empty() ? "" : " ") + std::string(1, all[i] == '\0' ? '0' : all[i]) + std::to_string(end - i);
    i = end;
  }
  return text;
}

inline void look(Partial& partial, InodeId directory, const std::string& prefix, View& view) {
  const CrashSpace& space = partial.space();
  for (const CellId id : space.names(directory)) {
    const Cell& cell = space.cell(id);
    const InodeId inode = cell.values[*partial.value(id)].inode;
    if (inode == no_inode) continue;
    const std::string path = prefix + cell.name;
    if (space.kind(inode) == FileKind::directory) {
      view[path] = "directory";
      look(partial, inode, path + "/", view);
    } else {
      const CellId bytes = space.content_cell(inode);
      view[path] = runs_of(space.cell(bytes).values[*partial.value(bytes)].bytes);
    }
  }
}

inline std::set<View> views(const Trace& trace, const ProfileOptions& profile, std::vector<OperationId> certain = {}) {
  std::set<View> all;
  const auto space = space_of(trace, profile, std::move(certain));
  SpaceWalk(*space).run([&](Partial& partial) {
    View view;
    look(partial, root_inode, "", view);
    all.insert(std::move(view));
  });
  return all;
}

// The contents when all operations of the trace are over.
inline std::set<View> views_at_end(const Trace& trace, const ProfileOptions& profile) {
  std::vector<OperationId> all(trace.operations.size());
  for (OperationId id = 0; id < all.size(); ++id) all[id] = id;
  return views(trace, profile, all);
}

// `n` times the letter.
inline Value letters(char letter, std::int64_t n) {
  return Value::copy_of(std::string(static_cast<std::size_t>(n), letter));
}

}  // namespace firedrill::crash

// For tests: every content of a CrashSpace, by the plain walk that crash_space.h describes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "faults/persistence/crash_space.h"

namespace firedrill::crash {

// One content in words: each path that is there, with the inode and, of a file, the digest of its bytes.
using Content = std::map<std::string, std::string>;

class SpaceWalk {
 public:
  using Visit = std::function<void(Partial&)>;

  explicit SpaceWalk(const CrashSpace& space) : space_(space), partial_(space) {}

  void run(const Visit& visit) {
    visit_ = &visit;
    agenda_.assign(space_.names(root_inode).begin(), space_.names(root_inode).end());
    met_ = {root_inode};
    step(0);
  }

  static Content content(Partial& partial) {
    Content content;
    describe(partial, root_inode, "", content);
    return content;
  }

 private:
  void step(std::size_t next) {
    if (next == agenda_.size()) {
      (*visit_)(partial_);
      return;
    }
    const CellId id = agenda_[next];
    const Cell& cell = space_.cell(id);
    for (ValueIndex value = 0; value < cell.values.size(); ++value) {
      if (!partial_.assign(id, value)) continue;
      const std::size_t before = agenda_.size();
      const InodeId inode = cell.kind == CellKind::name ? cell.values[value].inode : no_inode;
      const bool fresh = inode != no_inode && met_.insert(inode).second;
      if (fresh && space_.kind(inode) == FileKind::file) agenda_.push_back(space_.content_cell(inode));
      if (fresh && space_.kind(inode) == FileKind::directory) {
        agenda_.insert(agenda_.end(), space_.names(inode).begin(), space_.names(inode).end());
      }
      step(next + 1);
      agenda_.resize(before);
      if (fresh) met_.erase(inode);
      partial_.undo();
    }
  }

  static void describe(Partial& partial, InodeId directory, const std::string& prefix, Content& content) {
    const CrashSpace& space = partial.space();
    for (const CellId id : space.names(directory)) {
      const Cell& cell = space.cell(id);
      const InodeId inode = cell.values[*partial.value(id)].inode;
      if (inode == no_inode) continue;
      const std::string path = prefix + cell.name;
      content[path] = std::to_string(inode);
      if (space.kind(inode) == FileKind::directory) {
        describe(partial, inode, path + "/", content);
      } else {
        const CellId bytes = space.content_cell(inode);
        content[path] += " " + space.cell(bytes).values[*partial.value(bytes)].bytes.digest().hex();
      }
    }
  }

  const CrashSpace& space_;
  Partial partial_;
  std::vector<CellId> agenda_;
  std::set<InodeId> met_;
  const Visit* visit_ = nullptr;
};

inline std::unique_ptr<CrashSpace> space_of(const Trace& trace, const ProfileOptions& profile = {},
                                            std::vector<OperationId> certain = {}) {
  Result<std::unique_ptr<CrashSpace>> space =
      CrashSpace::build(trace, {.profile = profile, .certain = std::move(certain)});
  FD_CHECK(space.ok(), "{}", space.error().message);
  return std::move(*space);
}

}  // namespace firedrill::crash

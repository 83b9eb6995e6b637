// PathTable: every path ever named gets a number; per number its text, its hash and the inode that stands there now in
// each of two views. Numbers outlive resets, so trials that name the same files build no strings.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/base/digest.h"

namespace firedrill::sim {

using PathId = std::uint32_t;

class PathTable {
 public:
  struct Entry {
    std::string text;
    Digest digest;
    PathId parent = 0;                // known once asked for; 0 (the root itself) until then
    std::uint32_t inode[2] = {0, 0};  // 0: nothing there
    Digest term[2];                   // what it adds to the view's digest now
    PathId witness = 0;               // see depend(); 0: none
  };

  static constexpr PathId root = 0;
  PathTable() { intern(""); }

  PathId intern(std::string_view path) {
    if (const auto found = ids_.find(path); found != ids_.end()) return found->second;
    const auto id = static_cast<PathId>(entries_.size());
    Entry& entry = entries_.emplace_back();
    entry.text = path;
    entry.digest = digest_of(path);
    ids_.emplace(entry.text, id);
    const std::size_t size = directory_.size();
    if (size > 0 && path.size() > size && path.starts_with(directory_) && path[size] == '/') {
      const std::string_view rest = std::string_view(entry.text).substr(size + 1);
      entry.witness = intern(witness_ + std::string(rest.substr(0, rest.find('/'))));
    }
    return id;
  }
  // The directory part as a path of its own.
  PathId parent(PathId id) {
    if (entries_[id].parent == 0) {
      const std::size_t slash = entries_[id].text.rfind('/');
      if (slash == std::string::npos) return root;
      const PathId parent = intern(std::string_view(entries_[id].text).substr(0, slash));
      entries_[id].parent = parent;
    }
    return entries_[id].parent;
  }
  const Entry* find(std::string_view path) const {
    const auto found = ids_.find(path);
    return found == ids_.end() ? nullptr : &entries_[found->second];
  }
  Entry& operator[](PathId id) { return entries_[id]; }
  const Entry& operator[](PathId id) const { return entries_[id]; }

  // `directory`/NAME and all below it have `witness`/NAME for their witness. Forgets all texts.
  void depend(std::string_view directory, std::string_view witness) {
    if (directory_ == directory) return;
    directory_ = directory;
    witness_ = std::string(witness) + "/";
    forget();
  }

  // Nothing stands anywhere. Forgets the texts only when there are too many of them.
  void reset() {
    static constexpr std::size_t kept_max = 1 << 12;  // each of them costs at every reset
    if (entries_.size() > kept_max) return forget();
    for (Entry& entry : entries_) entry.inode[0] = entry.inode[1] = 0;
  }

 private:
  void forget() {
    ids_.clear();
    entries_.clear();
    intern("");
  }

  std::string directory_;
  std::string witness_;
  std::deque<Entry> entries_;                         // never moves: names point into the texts
  std::unordered_map<std::string_view, PathId> ids_;  // never iterated
};

}  // namespace firedrill::sim

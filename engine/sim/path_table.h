// PathTable: every path ever named gets a number; per number its text, its hash and the inode that stands there now in
// each of two views. Numbers outlive resets, so trials that name the same files build no strings.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

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
    bool is_witness = false;          // of some path
  };

  static constexpr PathId root = 0;
  PathTable() { intern(""); }

  PathId intern(std::string_view path) {
    const Digest digest = digest_of(path);
    if (const PathId known = id_of(digest); known != unknown) return known;
    const auto id = static_cast<PathId>(entries_.size());
    Entry& entry = entries_.emplace_back();
    entry.text = path;
    entry.digest = digest;
    file(id);
    if (lies_below(path, dependent_)) {
      const std::string_view rest = std::string_view(entry.text).substr(dependent_.size() + 1);
      entry.witness = intern(witness_ + std::string(rest.substr(0, rest.find('/'))));
      entries_[entry.witness].is_witness = true;
    } else if (lies_below(path, unread_)) {
      entry.witness = intern(never_there);
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
    const PathId id = id_of(digest_of(path));
    return id == unknown ? nullptr : &entries_[id];
  }
  Entry& operator[](PathId id) { return entries_[id]; }
  const Entry& operator[](PathId id) const { return entries_[id]; }

  // `dependent`/NAME and all below it have `witness`/NAME for their witness, and what lies below `unread` a path at
  // which nothing ever stands. Forgets all texts.
  struct Meaning {
    std::string_view dependent;
    std::string_view witness;
    std::string_view unread;
  };
  void depend(const Meaning& meaning) {
    if (dependent_ == meaning.dependent && unread_ == meaning.unread) return;
    dependent_ = meaning.dependent;
    witness_ = std::string(meaning.witness) + "/";
    unread_ = meaning.unread;
    forget();
  }

  // Nothing stands anywhere. Forgets the texts only when there are too many of them.
  void reset() {
    static constexpr std::size_t kept_max = 1 << 12;  // each of them costs at every reset
    if (entries_.size() > kept_max) return forget();
    for (Entry& entry : entries_) entry.inode[0] = entry.inode[1] = 0;
  }

 private:
  static constexpr PathId unknown = ~PathId{0};
  static constexpr std::string_view never_there = "//";  // no path of a file system

  static bool lies_below(std::string_view path, std::string_view directory) {
    const std::size_t size = directory.size();
    return size > 0 && path.size() > size && path.starts_with(directory) && path[size] == '/';
  }

  // A path is known by its digest: comparing texts would look at memory that is in no cache.
  PathId id_of(const Digest& digest) const {
    if (slots_.empty()) return unknown;
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t i = digest.low & mask; slots_[i] != 0; i = (i + 1) & mask) {
      const auto id = static_cast<PathId>(slots_[i]) - 1;
      if (slots_[i] >> 32 == digest.high >> 32 && entries_[id].digest == digest) return id;
    }
    return unknown;
  }
  void file(PathId id) {
    static constexpr std::size_t first_capacity = 256;
    const bool full = 2 * entries_.size() > slots_.size();
    if (full) slots_.assign(slots_.empty() ? first_capacity : 2 * slots_.size(), 0);
    for (PathId at = full ? 0 : id; at <= id; ++at) {
      const Digest& digest = entries_[at].digest;
      const std::size_t mask = slots_.size() - 1;
      std::size_t i = digest.low & mask;
      while (slots_[i] != 0) i = (i + 1) & mask;
      slots_[i] = digest.high >> 32 << 32 | (at + 1);
    }
  }
  void forget() {
    std::fill(slots_.begin(), slots_.end(), 0);
    entries_.clear();
    intern("");
  }

  std::string dependent_;
  std::string witness_;
  std::string unread_;
  std::deque<Entry> entries_;         // never moves: names point into the texts
  std::vector<std::uint64_t> slots_;  // open addressing: high half of the digest, id + 1 below; a power of two
};

}  // namespace firedrill::sim

// NameTable: texts of events as numbers. The same text gives the same number for the life of the table; 0 is the empty
// text. A table may serve many histories (trials repeat the same names), so interning a known text allocates nothing.
//
// Threads: one. Numbers are given in the order in which texts come.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/digest.h"
#include "engine/seam/event.h"

namespace firedrill {

class NameTable {
 public:
  NameTable();
  NameTable(const NameTable&) = delete;
  NameTable& operator=(const NameTable&) = delete;
  NameTable(NameTable&&) = default;
  NameId intern(std::string_view text);
  // Valid for the life of the table.
  std::string_view text(NameId name) const { return views_[name]; }
  // Digest of the text: what stands for a name in the digest of a history.
  const Digest& digest(NameId name) const { return digests_[name]; }
  std::size_t size() const { return views_.size(); }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    NameId name = 0;  // 0: free
  };
  void grow();

  std::deque<std::string> texts_;
  std::vector<std::string_view> views_;  // of the texts
  std::vector<Digest> digests_;
  std::vector<Slot> slots_;  // open addressing by a hash of the text
};

}  // namespace firedrill

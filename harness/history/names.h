// NameTable: texts of events as numbers. The same text gives the same number for the life of the table; 0 is the empty
// text. A table may serve many histories (trials repeat the same names), so interning a known text allocates nothing.
//
// Threads: one. Texts are told apart by their 128-bit digest, as everywhere in Firedrill.
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
  NameId intern(std::string_view text);
  // Valid for the life of the table.
  std::string_view text(NameId name) const { return texts_[name]; }
  // Digest of the text: what stands for a name in the digest of a history.
  const Digest& digest(NameId name) const { return digests_[name]; }
  std::size_t size() const { return texts_.size(); }

 private:
  void grow();

  std::deque<std::string> texts_;
  std::vector<Digest> digests_;
  std::vector<NameId> slots_;  // open addressing by digest; 0 is free
};

}  // namespace firedrill

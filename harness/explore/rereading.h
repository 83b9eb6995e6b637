// Rereading: a known state of a crash space, to be read once more. Cells that the state says nothing of get their first
// legal value, so that it is one definite content.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "harness/explore/crash_content.h"

namespace firedrill {

class Rereading final : public Decider {
 public:
  using Assignment = std::vector<std::pair<crash::CellId, crash::ValueIndex>>;

  // When the known cells get their values: when they are read (by a reader that reads no others before them), or all at
  // once.
  enum class Known : std::uint8_t { when_read, at_once };

  Rereading(const crash::CrashSpace& space, const Assignment& assignment, Known known = Known::when_read)
      : partial_(space), content_(partial_, *this) {
    for (const auto& [cell, value] : assignment) {
      known_[cell] = value;
      if (known == Known::at_once) partial_.assign(cell, value);
    }
  }

  void decide(crash::CellId cell) override {
    if (const auto known = known_.find(cell); known != known_.end() && partial_.assign(cell, known->second)) return;
    guessed_.push_back(cell);
    for (crash::ValueIndex value = 0; value < partial_.space().cell(cell).values.size(); ++value) {
      if (partial_.assign(cell, value)) return;
    }
  }
  DiskContent& content() { return content_; }
  // The cells that the state says nothing of, of those that have a value so far.
  const std::vector<crash::CellId>& guessed() const { return guessed_; }
  // What has a value so far, in that order.
  Assignment read() const {
    Assignment read;
    for (std::size_t i = 0; i < partial_.depth(); ++i) read.push_back(partial_.assignment(i));
    return read;
  }

 private:
  crash::Partial partial_;
  CrashContent content_;
  std::map<crash::CellId, crash::ValueIndex> known_;
  std::vector<crash::CellId> guessed_;
};

}  // namespace firedrill

// Facts about one crash and the implications between them: what profile.h describes, as bits. A profile adds its
// implications (rules.h), then `close` follows them, so that each fact has a row of all facts that it brings with it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "faults/persistence/structure.h"

namespace firedrill::crash {

using FactId = std::uint32_t;

class Facts {
 public:
  // With the rules that hold in every profile.
  explicit Facts(const Structure& structure);

  FactId issued(OperationId operation) const { return operation; }
  FactId journaled(OperationId operation) const { return operations_ + operation; }
  FactId named(std::uint32_t cell, std::uint32_t version) const { return name_[cell] + version - 1; }  // from 1
  FactId sized(InodeId file, std::uint32_t version) const { return size_.at(file) + version - 1; }     // from 1
  FactId whole(std::uint32_t write) const { return whole_ + write; }

  void implies(FactId fact, FactId other);
  void close();

  std::size_t count() const { return count_; }
  std::size_t words() const { return words_; }
  std::span<const std::uint64_t> closure(FactId fact) const { return {rows_.data() + fact * words_, words_}; }

 private:
  void add_common_rules(const Structure& structure);
  void close_over(FactId fact, FactId other, bool& changed);
  void add_deaths(const Structure& structure);

  const HappensBefore& order_;
  FactId operations_;
  std::vector<FactId> name_;
  std::map<InodeId, FactId> size_;
  FactId whole_ = 0;
  std::size_t count_ = 0;
  std::size_t words_ = 0;
  std::vector<std::vector<FactId>> implied_;
  std::vector<std::uint64_t> rows_;
};

}  // namespace firedrill::crash

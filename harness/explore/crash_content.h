// CrashContent: the content of a disk that an assignment of a crash space's cells says. A cell that has no value yet
// when it is read is given one by a Decider: that is how the lazy engine learns which cells matter. The explicit engine
// assigns all that can be reached before it lets anybody read.
//
// Every object has copies of the bytes of its own: threads that checked shared ones would fight for their reference
// counts. Threads: one.
#pragma once

#include <vector>

#include "faults/persistence/crash_space.h"
#include "harness/explore/disk_content.h"

namespace firedrill {

// Gives a value to a cell that has none, by Partial::assign.
class Decider {
 public:
  virtual ~Decider() = default;
  virtual void decide(crash::CellId cell) = 0;
};

class CrashContent final : public DiskContent {
 public:
  // All must outlive the content.
  CrashContent(const crash::Partial& partial, Decider& decider);

  Node child(Node directory, std::string_view name) override;
  void list(Node directory, std::vector<std::string>& names) override;
  FileKind kind(Node node) override { return space_.kind(node); }
  std::int64_t size(Node file) override;
  Value read(Node file, std::int64_t offset, std::int64_t size) override;

 private:
  struct Part {
    std::int64_t offset = 0;
    std::int64_t size = 0;
    Value bytes;
  };
  struct Bytes {
    Value whole;
    std::vector<Part> parts;  // that were read
  };
  struct Name {
    std::string_view text;
    crash::CellId cell = 0;
  };

  const crash::CellValue& decided(crash::CellId cell, crash::ValueIndex* index = nullptr);

  const crash::CrashSpace& space_;
  const crash::Partial& partial_;
  Decider& decider_;
  std::vector<std::vector<Name>> names_;   // by directory, sorted
  std::vector<std::vector<Bytes>> bytes_;  // by cell and value
};

}  // namespace firedrill

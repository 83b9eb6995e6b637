// What a name, a file's size and a file's bytes may be after a crash, each with the windows through which it is legal
// (crash_space.h says what cells and windows are). The bytes of a file come from a size and the fate of each write
// below it; combinations that read the same are one value, and a window that another one makes superfluous is dropped.
#pragma once

#include <cstdint>
#include <vector>

#include "faults/persistence/crash_space.h"
#include "faults/persistence/facts.h"
#include "faults/persistence/structure.h"

namespace firedrill::crash {

enum class WriteFate : std::uint8_t {
  whole,
  old,         // reads as what lay there before
  zeros,       // reads as zeros
  torn_old,    // one sector of it is lost and reads as before
  torn_zeros,  // ... and reads as zeros
};

struct FateOfWrite {
  std::uint32_t write = 0;
  WriteFate fate = WriteFate::whole;
  std::int64_t sector = 0;  // torn: which, counted from the start of the file
};

struct Window {
  std::vector<std::uint64_t> must;  // closed
  std::vector<std::uint64_t> must_not;
  std::uint32_t version = 0;            // of the name or of the size
  std::vector<FateOfWrite> fates = {};  // content
};

struct CellDraft {
  Cell cell;
  std::vector<std::vector<Window>> windows;  // by value
};

class Drafter {
 public:
  // `certain`: facts that hold in every crash, closed.
  Drafter(const Structure& structure, const Facts& facts, const SpaceOptions& options,
          std::vector<std::uint64_t> certain);

  CellDraft name(std::uint32_t cell) const;
  CellDraft size(InodeId file) const;
  // Errors: invalid_input (more contents than the limit).
  Result<CellDraft> content(InodeId file) const;

 private:
  struct Walk;

  Window start() const;
  void require(Window& window, FactId fact) const;
  static void forbid(Window& window, FactId fact);
  static bool contradicts(const Window& window);
  // None: not legal.
  std::optional<Window> size_window(InodeId file, std::uint32_t version) const;
  std::optional<Window> with_fate(const Window& window, const FateOfWrite& fate) const;
  std::vector<FateOfWrite> fates_of(std::uint32_t write) const;
  Status walk(Walk& walk, const Window& window, std::size_t next) const;
  Value compose(const FileHistory& file, std::int64_t size, const std::vector<FateOfWrite>& fates) const;

  const Structure& structure_;
  const Facts& facts_;
  const SpaceOptions& options_;
  std::vector<std::uint64_t> certain_;
};

}  // namespace firedrill::crash

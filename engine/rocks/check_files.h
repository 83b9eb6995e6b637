// check_files: the files of a store held against their formats, before RocksDB or replay() reads them. Used by
// record_store.cpp only. Pure; errors: not_found (not made yet), corrupted.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "engine/rocks/log_scan.h"
#include "engine/rocks/seam_env.h"

namespace firedrill {

inline constexpr std::string_view current_name = "CURRENT";
inline constexpr std::string_view log_suffix = ".log";

inline bool is_log(std::string_view name) { return name.ends_with(log_suffix); }
inline bool is_table(std::string_view name) { return name.ends_with(".sst"); }

// A store that is damaged, in these words.
Error damaged(std::string what);

// The file that describes the store, by CURRENT: "MANIFEST-000005\n".
std::optional<std::string> description_named(std::string_view current);

// Each opening of a store makes a log and then the description with the next number, and only then is CURRENT renamed:
// so the newest log is known by name. The first description, of the empty store, has none. (And once a table file was
// made, that took numbers of its own.)
std::string log_beside(std::string_view description);

// What load_store() gave, by name.
StoreFiles unpacked(const Value& loaded);

struct Checked {
  std::string newest;  // the last log that is not empty; none: ""
  std::int64_t log_bytes = 0;
  int logs = 0;
  int tables = 0;
  // The least number of a log that is not empty; 0: one of them has no number.
  std::uint64_t oldest_log = std::numeric_limits<std::uint64_t>::max();
};

// What the description and the logs of a store hold. Valid as long as the bytes they were read from.
struct StoreContents {
  LogRecords edits;
  LogRecords batches;
};

// Cuts off the unfinished write at the end of the newest log. `contents`, if given, gets what the files hold.
Result<Checked> check_files(StoreFiles& files, StoreContents* contents = nullptr);

}  // namespace firedrill

// log_scan: holds one of RocksDB's log files against its format (blocks of 32 KiB; records with checksum, length and
// type; doc/log_format.md of LevelDB), and tells damage from what a power loss may leave.
//
// RocksDB itself either refuses every log that does not end well or stops at the first bad record in silence. Here a
// log may end in one record that is not whole, if that can be what a lost write leaves: the file ends too early, or a
// sector of that record reads as zeros, and no whole record follows. Every other fault in a log is damage. That the
// last record itself was cut at its end cannot be told from a lost write; whoever was promised that record must notice.
//
// A record must therefore not end in a zero byte. Pure functions; no errors but `corrupted`.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace firedrill {

struct LogScan {
  std::int64_t clean = 0;  // bytes up to the end of the last whole record
  bool torn = false;       // what follows is an unfinished write
  // Of the batches in a write-ahead log: the first one's number, and what the next one's would be.
  bool has_batches = false;
  std::uint64_t first_sequence = 0;
  std::uint64_t next_sequence = 0;
};

enum class LogKind : std::uint8_t {
  batches,  // a write-ahead log: its batches are numbered without a gap
  edits,    // the description of the store's files: must be whole
};

// What the whole records of logs hold, in order: views of the logs' bytes, or of `joined` for what lies in pieces.
struct LogRecords {
  std::vector<std::string_view> payloads;
  std::deque<std::string> joined;
};

// `records`, if given, gets the payloads added.
Result<LogScan> scan_log(std::string_view bytes, LogKind kind, LogRecords* records = nullptr);

// CRC-32C (Castagnoli), as RocksDB computes it.
std::uint32_t crc32c(std::string_view bytes);

}  // namespace firedrill

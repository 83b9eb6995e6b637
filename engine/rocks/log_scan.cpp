#include "engine/rocks/log_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace firedrill {
namespace {

constexpr std::size_t block_size = 32768;
constexpr std::size_t header_size = 4 + 2 + 1;
constexpr std::size_t sector_size = 512;
constexpr std::size_t batch_header_size = 8 + 4;
constexpr std::size_t hashed_max = std::size_t{64} << 20;  // in search of a record behind a bad one

enum Type : std::uint8_t { zero, full, first, middle, last };

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ ((value & 1) != 0 ? 0x82F63B78U : 0U);
    table[i] = value;
  }
  return table;
}

std::uint32_t crc_by_table(std::uint32_t crc, std::string_view bytes) {
  static constexpr std::array<std::uint32_t, 256> table = make_table();
  for (const char c : bytes) crc = table[(crc ^ static_cast<std::uint8_t>(c)) & 0xFFU] ^ crc >> 8;
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc_by_instruction(std::uint32_t crc, std::string_view bytes) {
  std::uint64_t wide = crc;
  for (; bytes.size() >= sizeof(wide); bytes.remove_prefix(sizeof(wide))) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof(word));
    wide = __builtin_ia32_crc32di(wide, word);
  }
  crc = static_cast<std::uint32_t>(wide);
  for (const char c : bytes) crc = __builtin_ia32_crc32qi(crc, static_cast<std::uint8_t>(c));
  return crc;
}
#endif

template <class Number>
Number number_at(std::string_view bytes, std::size_t at) {
  Number number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

struct Fragment {
  std::uint8_t type = zero;
  std::size_t begin = 0;
  std::size_t size = 0;  // of the payload
};

std::size_t block_end(std::size_t at) { return (at / block_size + 1) * block_size; }

bool checksum_holds(std::string_view bytes, std::size_t at, std::size_t size) {
  const auto stored = number_at<std::uint32_t>(bytes, at);
  const std::uint32_t crc = crc32c(bytes.substr(at + header_size - 1, 1 + size));
  return stored == (crc >> 15 | crc << 17) + 0xA282EAD8U;  // masked, since a log may hold checksums
}

// The whole fragment at `at`, if there is one.
bool read_fragment(std::string_view bytes, std::size_t at, Fragment& fragment) {
  if (bytes.size() - at < header_size || block_end(at) - at < header_size) return false;
  fragment = {.type = static_cast<std::uint8_t>(bytes[at + 6]),
              .begin = at + header_size,
              .size = number_at<std::uint16_t>(bytes, at + 4)};
  const std::size_t end = fragment.begin + fragment.size;
  if (fragment.type < full || fragment.type > last || end > bytes.size() || end > block_end(at)) return false;
  return checksum_holds(bytes, at, fragment.size);
}

bool all_zeros(std::string_view bytes) { return bytes.find_first_not_of('\0') == std::string_view::npos; }

Error damaged(std::size_t at, std::string_view what) {
  return Error{.code = Code::corrupted, .message = fmt::format("{} at byte {}", what, at)};
}

// `bad`: where no whole fragment begins, in the record (or behind the last one) that begins at `clean`.
Status explain_tail(std::string_view bytes, std::size_t clean, std::size_t bad) {
  std::size_t hashed = 0;
  for (std::size_t at = bad + 1; at + header_size <= bytes.size(); ++at) {
    const auto type = static_cast<std::uint8_t>(bytes[at + 6]);
    if (type != full && type != first) continue;
    Fragment later;
    if (read_fragment(bytes, at, later)) {
      return damaged(bad, fmt::format("a whole record at byte {} follows one that is not", at));
    }
    hashed += later.size;
    if (hashed > hashed_max) return damaged(bad, "what no writer of logs leaves behind begins");
  }
  const bool has_header = bytes.size() - bad >= header_size && block_end(bad) - bad >= header_size;
  if (!has_header) return {};  // the file ends inside of it
  const std::size_t there = std::min(bytes.size(), block_end(bad)) - bad - header_size;
  const auto type = static_cast<std::uint8_t>(bytes[bad + 6]);
  if (type >= full && type <= last && checksum_holds(bytes, bad, there)) {
    return damaged(bad, "a record whose length is not its own");
  }
  const std::size_t end = bad + header_size + number_at<std::uint16_t>(bytes, bad + 4);
  if (type >= full && type <= last && end > bytes.size() && end <= block_end(bad)) return {};
  for (std::size_t at = clean; at < bytes.size();) {
    const std::size_t next = std::min((at / sector_size + 1) * sector_size, bytes.size());
    if (all_zeros(bytes.substr(at, next - at))) return {};
    at = next;
  }
  return damaged(bad, "a record that is not whole, and no sector of it is missing");
}

class Scanner {
 public:
  Scanner(std::string_view bytes, LogKind kind, LogRecords* records) : bytes_(bytes), kind_(kind), records_(records) {}

  Result<LogScan> run() {
    std::size_t at = 0;
    while (at < bytes_.size()) {
      const std::size_t left = block_end(at) - at;
      if (left < header_size) {
        const std::string_view filler = bytes_.substr(at, left);
        if (!all_zeros(filler)) return damaged(at, "bytes where none are ever written");
        at += filler.size();
        continue;
      }
      Fragment fragment;
      if (!read_fragment(bytes_, at, fragment)) return tail(at);
      const bool begins = fragment.type == full || fragment.type == first;
      if (begins == in_record_) return damaged(at, "a record that does not follow the one before");
      if (begins) start_.clear();
      if (records_ != nullptr) take(fragment);
      if (start_.size() < batch_header_size) {
        start_.append(bytes_.substr(fragment.begin, std::min(fragment.size, batch_header_size - start_.size())));
      }
      at = fragment.begin + fragment.size;
      in_record_ = fragment.type == first || fragment.type == middle;
      if (in_record_) continue;
      if (kind_ == LogKind::batches) FD_TRY_VOID(count_batch(at));
      if (records_ != nullptr) records_->payloads.push_back(payload_);
      scan_.clean = static_cast<std::int64_t>(at);
    }
    if (in_record_) return tail(at);
    return scan_;
  }

 private:
  void take(const Fragment& fragment) {
    const std::string_view piece = bytes_.substr(fragment.begin, fragment.size);
    if (fragment.type == full) {
      payload_ = piece;
      return;
    }
    if (fragment.type == first) records_->joined.emplace_back();
    payload_ = records_->joined.back().append(piece);
  }

  Result<LogScan> tail(std::size_t bad) {
    if (kind_ == LogKind::edits) return damaged(bad, "a record that is not whole");
    FD_TRY_VOID(explain_tail(bytes_, static_cast<std::size_t>(scan_.clean), bad));
    scan_.torn = true;
    return scan_;
  }

  Status count_batch(std::size_t end) {
    if (start_.size() < batch_header_size) return damaged(end, "a batch that is too short");
    const auto sequence = number_at<std::uint64_t>(start_, 0);
    const auto count = number_at<std::uint32_t>(start_, 8);
    if (scan_.has_batches && sequence != scan_.next_sequence) {
      return damaged(end, fmt::format("batch {} follows, not {}", sequence, scan_.next_sequence));
    }
    if (!scan_.has_batches) scan_.first_sequence = sequence;
    scan_.has_batches = true;
    scan_.next_sequence = sequence + count;
    return {};
  }

  std::string_view bytes_;
  LogKind kind_;
  LogScan scan_;
  std::string start_;  // of the record's payload
  LogRecords* records_;
  std::string_view payload_;  // of the record, as far as it was taken
  bool in_record_ = false;
};

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~crc_by_instruction(~0U, bytes);
#endif
  return ~crc_by_table(~0U, bytes);
}

Result<LogScan> scan_log(std::string_view bytes, LogKind kind, LogRecords* records) {
  return Scanner(bytes, kind, records).run();
}

}  // namespace firedrill

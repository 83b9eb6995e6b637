#include "engine/rocks/replay.h"

#include <cstring>
#include <map>
#include <set>
#include <string>

namespace firedrill {
namespace {

// Tags of RocksDB's version edits, those with which a store without tables is described.
enum Tag : std::uint64_t {
  comparator = 1,
  log_number = 2,
  next_file_number = 3,
  last_sequence = 4,
  previous_log_number = 9,
  least_log_kept = 10,
  column_family_max = 203,
  store_id = 8193,
};
constexpr std::string_view comparator_name = "leveldb.BytewiseComparator";

// Operations in a batch, on the only column family.
enum Operation : char { deletion = 0, put = 1 };
constexpr std::size_t batch_header_size = 8 + 4;

// Reads from the front of bytes; false: they are not of that form.
struct Reader {
  std::string_view rest;

  bool number(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
      const auto byte = static_cast<std::uint8_t>(rest.front());
      rest.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool text(std::string_view& value) {
    std::uint64_t size = 0;
    if (!number(size) || size > rest.size()) return false;
    value = rest.substr(0, size);
    rest.remove_prefix(size);
    return true;
  }
};

// Whether the edit names no table and keeps all logs from `oldest_log` on. Adds its tags to `seen`.
bool keeps_all_logs(std::string_view edit, std::uint64_t oldest_log, std::set<std::uint64_t>& seen) {
  Reader reader{edit};
  while (!reader.rest.empty()) {
    std::uint64_t tag = 0;
    std::uint64_t number = 0;
    std::string_view text;
    if (!reader.number(tag)) return false;
    seen.insert(tag);
    switch (tag) {
      case comparator:
        if (!reader.text(text) || text != comparator_name) return false;
        break;
      case store_id:
        if (!reader.text(text)) return false;
        break;
      case log_number:
      case least_log_kept:
        if (!reader.number(number) || number > oldest_log) return false;
        break;
      case next_file_number:
      case last_sequence:
      case previous_log_number:
      case column_family_max:
        if (!reader.number(number)) return false;
        break;
      default: return false;
    }
  }
  return true;
}

using Records = std::map<std::string_view, std::string_view>;

bool apply(std::string_view batch, Records& records) {
  if (batch.size() < batch_header_size) return false;
  std::uint32_t count = 0;
  std::memcpy(&count, batch.data() + 8, sizeof(count));
  Reader reader{batch.substr(batch_header_size)};
  for (; count > 0 && !reader.rest.empty(); --count) {
    const char operation = reader.rest.front();
    reader.rest.remove_prefix(1);
    std::string_view name;
    std::string_view value;
    if ((operation != put && operation != deletion) || !reader.text(name)) return false;
    if (operation == deletion) {
      records.erase(name);
    } else {
      if (!reader.text(value)) return false;
      records[name] = value;
    }
  }
  return count == 0 && reader.rest.empty();
}

}  // namespace

std::optional<Value> replay(const ReplayInput& input) {
  std::set<std::uint64_t> seen;
  for (const std::string_view edit : input.edits) {
    if (!keeps_all_logs(edit, input.oldest_log, seen)) return std::nullopt;
  }
  // RocksDB takes a description without one of these for damaged.
  for (const std::uint64_t needed : {comparator, log_number, next_file_number, last_sequence}) {
    if (!seen.contains(needed)) return std::nullopt;
  }
  Records records;
  for (const std::string_view batch : input.batches) {
    if (!apply(batch, records)) return std::nullopt;
  }
  std::string names;
  std::vector<Value> parts(1);
  for (const auto& [name, value] : records) {
    names.append(name).push_back('\n');
    parts.push_back(Value::copy_of(value));
  }
  parts[0] = Value::copy_of(std::string_view(names));
  return Value::pack(parts);
}

}  // namespace firedrill

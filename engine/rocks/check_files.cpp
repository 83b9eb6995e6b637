#include "engine/rocks/check_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/text.h"

namespace firedrill {

Error damaged(std::string what) {
  return Error{.code = Code::corrupted,
               .message = std::move(what),
               .hint = "restore the catalog from a copy, or rebuild it: firedrill audit DIR --rebuild-catalog"};
}

std::optional<std::string> description_named(std::string_view current) {
  constexpr std::string_view prefix = "MANIFEST-";
  if (!current.ends_with('\n') || !current.starts_with(prefix)) return std::nullopt;
  const std::string_view name = current.substr(0, current.size() - 1);
  if (!parse_whole(name.substr(prefix.size()))) return std::nullopt;
  return std::string(name);
}

std::string log_beside(std::string_view description) {
  const std::uint64_t number = *parse_whole(description.substr(description.find('-') + 1));
  return number <= 1 ? "" : fmt::format("{:06}.log", number - 1);
}

StoreFiles unpacked(const Value& loaded) {
  StoreFiles files;
  files.directory = std::string(loaded[0].text());
  const std::vector<std::string> names = split(loaded[1].text(), '\n');
  for (std::size_t i = 0; i + 2 < loaded.parts().size(); ++i) {
    const Value& bytes = loaded[i + 2];
    files.entries[names[i]] = {.size = static_cast<std::int64_t>(bytes.size()), .bytes = bytes};
  }
  return files;
}

Result<Checked> check_files(StoreFiles& files, StoreContents* contents) {
  Checked checked;
  for (const auto& [name, entry] : files.entries) {
    if (!entry.bytes) continue;
    if (is_table(name)) ++checked.tables;
    if (!is_log(name)) continue;
    ++checked.logs;
    checked.log_bytes += entry.size;
    if (entry.size == 0) continue;
    checked.newest = name;
    const std::string_view number = std::string_view(name).substr(0, name.size() - log_suffix.size());
    checked.oldest_log = std::min(checked.oldest_log, parse_whole(number).value_or(0));
  }
  const auto current = files.entries.find(current_name);
  if (current == files.entries.end() || !current->second.bytes) {
    // Only a store that is just being made has nothing but empty logs.
    const bool held_something = !checked.newest.empty() || checked.tables > 0;
    if (held_something) return damaged(fmt::format("{} is missing", files.path(current_name)));
    return Error{.code = Code::not_found, .message = fmt::format("no store in {}", files.directory)};
  }
  const auto description = description_named(current->second.bytes.text());
  if (!description) return damaged(fmt::format("{} names no description", files.path(current_name)));
  const auto described = files.entries.find(*description);
  if (described == files.entries.end() || !described->second.bytes)
    return damaged(fmt::format("{} is missing", files.path(*description)));
  const auto whole = scan_log(described->second.bytes.text(), LogKind::edits, contents ? &contents->edits : nullptr);
  if (!whole || described->second.size == 0) {
    return damaged(fmt::format("{}: {}", files.path(*description), whole ? "it is empty" : whole.error().message));
  }
  std::optional<std::uint64_t> expected;
  if (checked.tables == 0) {
    expected = 1;
    const std::string beside = log_beside(*description);
    if (!beside.empty() && !files.entries.contains(beside)) {
      return damaged(fmt::format("{} is missing", files.path(beside)));
    }
  }
  for (auto& [name, entry] : files.entries) {
    if (!is_log(name) || !entry.bytes) continue;
    const auto scan = scan_log(entry.bytes.text(), LogKind::batches, contents ? &contents->batches : nullptr);
    if (!scan) return damaged(fmt::format("{}: {}", files.path(name), scan.error().message));
    if (scan->torn && name != checked.newest) return damaged(fmt::format("{} is not whole", files.path(name)));
    // With a table file older logs may lie about that it has made superfluous, in whatever part they were removed.
    if (scan->has_batches && expected && scan->first_sequence != *expected) {
      return damaged(fmt::format("{} begins with batch {}, not {}: a log before it is missing", files.path(name),
                                 scan->first_sequence, *expected));
    }
    if (scan->has_batches && checked.tables == 0) expected = scan->next_sequence;
    if (scan->torn) {
      const std::string clean(entry.bytes.text().substr(0, static_cast<std::size_t>(scan->clean)));
      entry = {.size = scan->clean, .bytes = Value::copy_of(clean)};
    }
  }
  return checked;
}

}  // namespace firedrill

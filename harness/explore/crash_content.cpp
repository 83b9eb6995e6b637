#include "harness/explore/crash_content.h"

#include <algorithm>

namespace firedrill {

using crash::CellId;
using crash::CellKind;
using crash::CellValue;
using crash::ValueIndex;

CrashContent::CrashContent(const crash::Partial& partial, Decider& decider)
    : space_(partial.space()), partial_(partial), decider_(decider) {
  FD_CHECK(space_.inode_count() <= node_max, "{} inodes", space_.inode_count());
  names_.resize(space_.inode_count());
  bytes_.resize(space_.cell_count());
  for (CellId id = 0; id < space_.cell_count(); ++id) {
    const crash::Cell& cell = space_.cell(id);
    if (cell.kind == CellKind::name) names_[cell.inode].push_back({.text = cell.name, .cell = id});
    if (cell.kind != CellKind::content) continue;
    for (const CellValue& value : cell.values) {
      Bytes& bytes = bytes_[id].emplace_back();
      bytes.whole = Value::copy_of(value.bytes ? value.bytes.text() : std::string_view());
      bytes.whole.digest();  // known from now on
    }
  }
  for (auto& names : names_) {
    std::sort(names.begin(), names.end(), [](const Name& a, const Name& b) { return a.text < b.text; });
  }
}

const CellValue& CrashContent::decided(CellId cell, ValueIndex* index) {
  std::optional<ValueIndex> value = partial_.value(cell);
  if (!value) {
    decider_.decide(cell);
    value = partial_.value(cell);
    FD_CHECK(value.has_value(), "{} has no value although it was decided", space_.cell(cell).name);
  }
  if (index != nullptr) *index = *value;
  return space_.cell(cell).values[*value];
}

DiskContent::Node CrashContent::child(Node directory, std::string_view name) {
  const auto& names = names_[directory];
  const auto at =
      std::lower_bound(names.begin(), names.end(), name, [](const Name& a, std::string_view b) { return a.text < b; });
  if (at == names.end() || at->text != name) return absent;
  return decided(at->cell).inode;
}

void CrashContent::list(Node directory, std::vector<std::string>& names) {
  for (const Name& name : names_[directory]) {
    if (decided(name.cell).inode != crash::no_inode) names.emplace_back(name.text);
  }
}

std::int64_t CrashContent::size(Node file) {
  // A reader that knows the size knows less than one that has read: only where it already read is there a content.
  const CellId content = space_.content_cell(file);
  if (const auto value = partial_.value(content)) return space_.cell(content).values[*value].size;
  return decided(space_.size_cell(file)).size;
}

Value CrashContent::read(Node file, std::int64_t offset, std::int64_t size) {
  ValueIndex index = 0;
  const CellId cell = space_.content_cell(file);
  decided(cell, &index);
  Bytes& bytes = bytes_[cell][index];
  const auto whole = static_cast<std::int64_t>(bytes.whole.size());
  const std::int64_t from = std::clamp<std::int64_t>(offset, 0, whole);
  const std::int64_t count = std::clamp<std::int64_t>(size, 0, whole - from);
  if (from == 0 && count == whole) return bytes.whole;
  for (const Part& part : bytes.parts) {
    if (part.offset == from && part.size == count) return part.bytes;
  }
  Part& part = bytes.parts.emplace_back();
  part = {.offset = from, .size = count, .bytes = bytes.whole.slice(from, count)};
  part.bytes.digest();
  return part.bytes;
}

}  // namespace firedrill

#include "harness/explore/disk_content.h"

#include <algorithm>

namespace firedrill {

FixedContent::FixedContent() : nodes_(1) {}

DiskContent::Node FixedContent::add(Node directory, std::string_view name, FileKind kind, const Value& bytes) {
  const auto node = static_cast<Node>(nodes_.size()) + root;
  FD_CHECK(at(directory).kind == FileKind::directory, "{} is entered into a file", name);
  at(directory).names.insert_or_assign(std::string(name), node);
  Entry entry{.kind = kind, .names = {}, .bytes = {}, .parts = {}};
  if (kind == FileKind::file) entry.bytes = bytes ? bytes : Value::copy_of(std::string_view());
  nodes_.push_back(std::move(entry));
  return node;
}

Status FixedContent::copy(FileSystem& files, const std::string& path, Node into) {
  FD_TRY(const std::vector<std::string> names, files.list(path));
  for (const std::string& name : names) {
    const std::string below = path.empty() ? name : path + "/" + name;
    FD_TRY(const FileInfo info, files.stat(below));
    if (info.kind == FileKind::directory) {
      FD_TRY_VOID(copy(files, below, add(into, name, FileKind::directory)));
      continue;
    }
    FD_TRY(const auto file, files.open(below));
    FD_TRY(const Value bytes, file->read(0, info.size));
    add(into, name, FileKind::file, bytes);
  }
  return {};
}

Result<FixedContent> FixedContent::copy_of(FileSystem& files) {
  FixedContent content;
  FD_TRY_VOID(content.copy(files, "", root));
  return content;
}

DiskContent::Node FixedContent::child(Node directory, std::string_view name) {
  const auto& names = at(directory).names;
  const auto found = names.find(name);
  return found == names.end() ? absent : found->second;
}

void FixedContent::list(Node directory, std::vector<std::string>& names) {
  for (const auto& [name, node] : at(directory).names) names.push_back(name);
}

Value FixedContent::read(Node file, std::int64_t offset, std::int64_t size) {
  Entry& entry = at(file);
  const auto whole = static_cast<std::int64_t>(entry.bytes.size());
  const std::int64_t from = std::clamp<std::int64_t>(offset, 0, whole);
  const std::int64_t count = std::clamp<std::int64_t>(size, 0, whole - from);
  if (from == 0 && count == whole) return entry.bytes;
  Value& part = entry.parts[{from, count}];
  if (!part) {
    part = entry.bytes.as_bytes().slice(from, count);
    part.digest();  // known from now on
  }
  return part;
}

}  // namespace firedrill

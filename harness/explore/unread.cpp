#include "harness/explore/unread.h"

#include <fmt/format.h>

namespace firedrill {

DiskContent::Node UnreadGuard::child(Node directory, std::string_view name) {
  if (unread_.names.contains({directory, std::string(name)})) note(fmt::format("the name {}", name));
  return content_->child(directory, name);
}

void UnreadGuard::list(Node directory, std::vector<std::string>& names) {
  const auto first = unread_.names.lower_bound({directory, ""});
  if (first != unread_.names.end() && first->first == directory) note(fmt::format("the name {}", first->second));
  content_->list(directory, names);
}

std::int64_t UnreadGuard::size(Node file) {
  if (unread_.sizes.contains(file)) note(fmt::format("the size of file {}", file));
  return content_->size(file);
}

Value UnreadGuard::read(Node file, std::int64_t offset, std::int64_t size) {
  if (unread_.contents.contains(file)) note(fmt::format("the content of file {}", file));
  return content_->read(file, offset, size);
}

void UnreadGuard::note(std::string what) {
  if (trespass_.empty()) trespass_ = std::move(what);
}

}  // namespace firedrill

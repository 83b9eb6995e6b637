// Unread: the parts of a disk of which nobody has said what they hold, so that nobody may read them. UnreadGuard stands
// before a content and notes the first of them that is read.
//
// Threads: one per guard; Unread is immutable once made. Errors: noted, told by trespass().
#pragma once

#include <set>
#include <string>
#include <utility>

#include "harness/explore/disk_content.h"

namespace firedrill {

struct Unread {
  std::set<std::pair<DiskContent::Node, std::string>> names;  // by directory; to list it is to read them all
  std::set<DiskContent::Node> sizes;                          // of files
  std::set<DiskContent::Node> contents;                       // of files

  bool empty() const { return names.empty() && sizes.empty() && contents.empty(); }
};

class UnreadGuard final : public DiskContent {
 public:
  // It must outlive the guard.
  explicit UnreadGuard(const Unread& unread) : unread_(unread) {}

  // From now on this content. It must outlive its use.
  void stand_before(DiskContent& content) { content_ = &content; }
  // What was read although it must not be; empty: nothing.
  const std::string& trespass() const { return trespass_; }

  Node child(Node directory, std::string_view name) override;
  void list(Node directory, std::vector<std::string>& names) override;
  FileKind kind(Node node) override { return content_->kind(node); }
  std::int64_t size(Node file) override;
  Value read(Node file, std::int64_t offset, std::int64_t size) override;

 private:
  void note(std::string what);

  const Unread& unread_;
  DiskContent* content_ = nullptr;
  std::string trespass_;
};

}  // namespace firedrill

#include "harness/explore/overlay.h"

#include <fmt/format.h>

#include <algorithm>

namespace firedrill {
namespace {

Error not_found(std::string_view path) {
  return Error{.code = Code::not_found, .message = fmt::format("there is no {}", path)};
}

}  // namespace

class Overlay::OverlayFile final : public File {
 public:
  OverlayFile(Overlay& disk, Node node, bool writable) : disk_(disk), node_(node), writable_(writable) {}
  Status write(std::int64_t offset, const Value& bytes) override {
    if (!writable_) return Error{.code = Code::io_error, .message = "the file was opened for reading"};
    disk_.made_at(node_).bytes.write(offset, bytes.as_bytes());
    return {};
  }
  Result<Value> read(std::int64_t offset, std::int64_t size) override { return disk_.read(node_, offset, size); }
  Result<std::int64_t> size() override { return disk_.size(node_); }
  Status sync() override { return {}; }
  Status close() override { return {}; }

  // A file is opened a hundred times a check: its memory goes back to the disk it is of. The disk's address stands in
  // front of it.
  static void* operator new(std::size_t size, Overlay& disk) {
    void* memory = nullptr;
    if (disk.spare_.empty()) {
      memory = ::operator new(front + size);
    } else {
      memory = disk.spare_.back();
      disk.spare_.pop_back();
    }
    *static_cast<Overlay**>(memory) = &disk;
    return static_cast<std::byte*>(memory) + front;
  }
  static void operator delete(void* file, Overlay&) { operator delete(file); }
  static void operator delete(void* file) {
    void* memory = static_cast<std::byte*>(file) - front;
    (*static_cast<Overlay**>(memory))->spare_.push_back(memory);
  }

 private:
  static constexpr std::size_t front = alignof(std::max_align_t);
  Overlay& disk_;
  Node node_;
  bool writable_;
};

class Overlay::Files final : public FileSystem {
 public:
  explicit Files(Overlay& disk) : disk_(disk) {}

  Result<std::unique_ptr<File>> create(std::string_view path) override {
    PathEntry& entry = disk_.entry(path);
    FD_TRY(const Node directory, disk_.holder(entry));
    if (disk_.resolve(entry) != DiskContent::absent) {
      return Error{.code = Code::already_exists, .message = fmt::format("{} exists", path)};
    }
    const Node node = disk_.make(FileKind::file);
    disk_.set_child(entry, directory, node);
    return std::unique_ptr<File>(new (disk_) OverlayFile(disk_, node, true));
  }
  Result<std::unique_ptr<File>> open(std::string_view path) override {
    const Node node = disk_.find(path);
    if (node == DiskContent::absent) return not_found(path);
    if (disk_.kind(node) != FileKind::file) {
      return Error{.code = Code::io_error, .message = fmt::format("{} is a directory", path)};
    }
    return std::unique_ptr<File>(new (disk_) OverlayFile(disk_, node, false));
  }
  Result<FileInfo> stat(std::string_view path) override {
    const Node node = disk_.find(path);
    if (node == DiskContent::absent) return not_found(path);
    const FileKind kind = disk_.kind(node);
    return FileInfo{.kind = kind, .size = kind == FileKind::file ? disk_.size(node) : 0};
  }
  Result<std::vector<std::string>> list(std::string_view directory) override {
    const Node node = disk_.find(directory);
    if (node == DiskContent::absent || disk_.kind(node) != FileKind::directory) return not_found(directory);
    return disk_.list(node);
  }
  Status rename(std::string_view from, std::string_view to) override {
    PathEntry& source = disk_.entry(from);
    PathEntry& target = disk_.entry(to);
    const Node node = disk_.resolve(source);
    if (node == DiskContent::absent) return not_found(from);
    FD_TRY(const Node left, disk_.holder(source));
    FD_TRY(const Node entered, disk_.holder(target));
    const Node replaced = disk_.resolve(target);
    if (replaced != DiskContent::absent && disk_.kind(replaced) == FileKind::directory) {
      return Error{.code = Code::io_error, .message = fmt::format("{} is a directory", to)};
    }
    disk_.set_child(source, left, DiskContent::absent);
    disk_.set_child(target, entered, node);
    return {};
  }
  Status remove(std::string_view path) override {
    PathEntry& entry = disk_.entry(path);
    const Node node = disk_.resolve(entry);
    if (node == DiskContent::absent) return not_found(path);
    if (disk_.kind(node) == FileKind::directory && !disk_.list(node).empty()) {
      return Error{.code = Code::io_error, .message = fmt::format("{} is not empty", path)};
    }
    FD_TRY(const Node directory, disk_.holder(entry));
    disk_.set_child(entry, directory, DiskContent::absent);
    return {};
  }
  Status make_directory(std::string_view path) override {
    PathEntry& entry = disk_.entry(path);
    FD_TRY(const Node directory, disk_.holder(entry));
    if (disk_.resolve(entry) != DiskContent::absent) {
      return Error{.code = Code::already_exists, .message = fmt::format("{} exists", path)};
    }
    disk_.set_child(entry, directory, disk_.make(FileKind::directory));
    return {};
  }
  Status sync_directory(std::string_view directory) override {
    return disk_.find(directory) == DiskContent::absent ? Status(not_found(directory)) : Status();
  }
  Status drop_cache(std::string_view path) override {
    return disk_.find(path) == DiskContent::absent ? Status(not_found(path)) : Status();
  }
  Result<std::int64_t> free_space() override { return std::int64_t{1} << 40; }

 private:
  Overlay& disk_;
};

void Overlay::look_at(DiskContent& content) {
  content_ = &content;
  changes_used_ = 0;
  for (std::size_t i = 0; i < made_used_; ++i) made_[i].bytes.clear();
  made_used_ = 0;
  ++epoch_;
  PathEntry& top = entry("");
  top.node = DiskContent::root;
  top.epoch = epoch_;
}

std::unique_ptr<FileSystem> Overlay::files() { return std::make_unique<Files>(*this); }

Overlay::~Overlay() {
  for (void* memory : spare_) ::operator delete(memory);
}

Overlay::PathEntry& Overlay::entry(std::string_view path) {
  const std::uint64_t hash = digest_of(path).low;
  if (!slots_.empty()) {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = hash & mask; slots_[at] != 0; at = (at + 1) & mask) {
      PathEntry& known = entries_[slots_[at] - 1];
      if (known.hash == hash && known.text == path) return known;
    }
  }
  return add_entry(path, hash);
}

Overlay::PathEntry& Overlay::add_entry(std::string_view path, std::uint64_t hash) {
  PathEntry* parent = path.empty() ? nullptr : &entry(parent_path(path));
  if (2 * (entries_.size() + 1) > slots_.size()) {
    slots_.assign(std::max<std::size_t>(256, 2 * slots_.size()), 0);
    for (std::size_t i = 0; i < entries_.size(); ++i) take_slot(entries_[i].hash, i);
  }
  PathEntry& made = entries_.emplace_back();
  made.text = path;
  made.parent = parent;
  made.name = file_name(made.text);
  made.hash = hash;
  take_slot(hash, entries_.size() - 1);
  return made;
}

void Overlay::take_slot(std::uint64_t hash, std::size_t entry) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at] != 0) at = (at + 1) & mask;
  slots_[at] = static_cast<std::uint32_t>(entry) + 1;
}

Overlay::Node Overlay::resolve(PathEntry& path) {
  if (path.epoch == epoch_) return path.node;
  if (path.text.empty()) {
    path.node = DiskContent::root;
  } else {
    const Node directory = resolve(*path.parent);
    const bool there = directory != DiskContent::absent && kind(directory) == FileKind::directory;
    path.node = there ? child(directory, path.name) : DiskContent::absent;
  }
  path.epoch = epoch_;
  return path.node;
}

Overlay::Node Overlay::child(Node directory, std::string_view name) {
  for (std::size_t i = changes_used_; i-- > 0;) {
    if (changes_[i].directory == directory && changes_[i].name == name) return changes_[i].node;
  }
  return made(directory) ? DiskContent::absent : content_->child(directory, name);
}

Result<Overlay::Node> Overlay::holder(PathEntry& path) {
  if (path.text.empty()) return Error{.code = Code::io_error, .message = "the root stays where it is"};
  PathEntry& parent = *path.parent;
  const Node directory = resolve(parent);
  if (directory == DiskContent::absent || kind(directory) != FileKind::directory) return not_found(parent.text);
  return directory;
}

void Overlay::set_child(PathEntry& path, Node directory, Node node) {
  const bool moves_paths = (path.node != DiskContent::absent && kind(path.node) == FileKind::directory) ||
                           (node != DiskContent::absent && kind(node) == FileKind::directory);
  if (changes_used_ == changes_.size()) changes_.emplace_back();
  Change& change = changes_[changes_used_++];
  change.directory = directory;
  change.name = path.name;
  change.node = node;
  path.node = node;
  // What was found below a directory may have moved with it.
  if (moves_paths) ++epoch_;
}

Overlay::Node Overlay::make(FileKind kind) {
  if (made_used_ == made_.size()) made_.emplace_back();
  made_[made_used_].kind = kind;
  return first_made + static_cast<Node>(made_used_++);
}

Value Overlay::read(Node node, std::int64_t offset, std::int64_t size) {
  Value bytes = made(node) ? made_at(node).bytes.read(offset, size) : content_->read(node, offset, size);
  if (options_.keep_digests || bytes.size() == 0) return bytes;
  return bytes.slice(0, static_cast<std::int64_t>(bytes.size()));
}

std::vector<std::string> Overlay::list(Node directory) {
  std::vector<std::string> names;
  if (!made(directory)) content_->list(directory, names);
  for (std::size_t i = 0; i < changes_used_; ++i) {
    const Change& change = changes_[i];
    if (change.directory != directory) continue;
    std::erase(names, change.name);
    if (change.node != DiskContent::absent) names.push_back(change.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace firedrill

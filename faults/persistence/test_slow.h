// For tests: the profiles again, in plain operational words. All cuts one by one; for each, what every name, every size
// and every write may have come to; all combinations; and a look at each disk. It shares the trace and the order with
// CrashSpace, and nothing else: no facts, no windows, no cells.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "faults/persistence/profile.h"
#include "faults/persistence/test_sizes.h"
#include "faults/persistence/test_walk.h"
#include "faults/persistence/trace.h"

namespace firedrill::crash {

class SlowChecker {
 public:
  SlowChecker(const Trace& trace, const ProfileOptions& profile, std::vector<OperationId> certain = {})
      : trace_(trace), order_(trace), profile_(profile), certain_(std::move(certain)) {
    replay();
  }

  // Every legal content, with the newest step that may have been acknowledged when it was left (0: none).
  std::map<Content, std::int64_t> run() {
    std::vector<bool> cut(trace_.operations.size());
    cuts(cut, 0);
    return std::move(contents_);
  }

 private:
  using Cut = std::vector<bool>;
  using Place = std::pair<InodeId, std::string>;
  struct Change {
    OperationId operation;
    InodeId inode;
  };
  struct SyncCall {
    OperationId operation;
    bool failed;
    bool is_close;
  };
  struct WrittenFile {
    Value base = Value::copy_of(std::string_view());
    std::vector<OperationId> writes;
    std::vector<SyncCall> syncs;
  };
  using Names = std::map<Place, InodeId>;
  using Bytes = std::set<std::string>;  // digests

  const Operation& at(OperationId id) const { return trace_.operations[id]; }
  int node(OperationId id) const { return trace_.programs[at(id).program].node; }
  // what the trace did
  InodeId look_up(std::string_view path) const {
    InodeId inode = root_inode;
    while (!path.empty()) {
      const std::size_t slash = std::min(path.find('/'), path.size());
      inode = live_.at({inode, std::string(path.substr(0, slash))});
      path = path.substr(std::min(slash + 1, path.size()));
    }
    return inode;
  }
  Place place(std::string_view path) const { return {look_up(parent_path(path)), std::string(file_name(path))}; }
  void change(std::string_view path, OperationId id, InodeId inode) {
    const Place where = place(path);
    changes_[where].push_back({id, inode});
    live_[where] = inode;
  }
  void replay() {
    for (const BaseEntry& entry : trace_.base) {
      const Place where = place(entry.path);
      base_[where] = entry.inode;
      live_[where] = entry.inode;
      changes_[where];
      if (entry.kind == FileKind::file) files_[entry.inode].base = entry.bytes;
    }
    for (OperationId id = 0; id < trace_.operations.size(); ++id) replay(id);
  }
  void replay(OperationId id) {
    const Operation& operation = at(id);
    if (operation.kind != OperationKind::file) return;
    const bool failed = operation.error.has_value();
    if (operation.op == FileOp::write) files_[operation.inode].writes.push_back(id);
    if (operation.op == FileOp::sync) files_[operation.inode].syncs.push_back({id, failed, false});
    if (operation.op == FileOp::close) files_[operation.inode].syncs.push_back({id, failed, true});
    if (operation.op == FileOp::sync_directory)
      directory_syncs_[look_up(operation.path)].push_back({id, failed, false});
    if (failed) return;
    if (operation.op == FileOp::create) files_[operation.inode];
    if (operation.op == FileOp::create || operation.op == FileOp::make_directory) {
      change(operation.path, id, operation.inode);
    }
    if (operation.op == FileOp::remove) change(operation.path, id, no_inode);
    if (operation.op == FileOp::rename) {
      replaces_[id] = live_[place(operation.second)];
      change(operation.path, id, no_inode);
      change(operation.second, id, operation.inode);
    }
  }
  // cuts
  void cuts(Cut& cut, OperationId next) {
    if (next == trace_.operations.size()) {
      for (const OperationId id : certain_) {
        if (!cut[id]) return;
      }
      crash(cut);
      return;
    }
    cuts(cut, next + 1);
    for (OperationId id = 0; id < next; ++id) {
      if (!cut[id] && order_.before(id, next)) return;
    }
    cut[next] = true;
    cuts(cut, next + 1);
    cut[next] = false;
  }

  void crash(const Cut& cut) {
    newest_ = 0;
    for (OperationId id = 0; id < trace_.operations.size(); ++id) {
      if (cut[id] && at(id).kind == OperationKind::acknowledged) {
        newest_ = std::max(newest_, at(id).checkpoint.step);
      }
    }
    if (profile_.kind == ProfileKind::ext4) return crash_ext4(cut);
    names_left(cut, changes_.begin(), {}, {});
  }

  bool promises(const SyncCall& sync, const std::vector<SyncCall>& all, OperationId item) const {
    if (sync.failed || !order_.before(item, sync.operation)) return false;
    for (const SyncCall& other : all) {
      const bool before_item = order_.before(other.operation, item);
      const bool after_sync = order_.before(sync.operation, other.operation);
      if (other.failed && !before_item && !after_sync) return false;
    }
    return true;
  }
  bool name_is_synced(const Cut& cut, InodeId directory, OperationId id) const {
    const auto all = directory_syncs_.find(directory);
    if (all == directory_syncs_.end()) return false;
    std::vector<SyncCall> syncs = all->second;
    if (profile_.node_caches)
      std::erase_if(syncs, [&](const SyncCall& sync) { return node(sync.operation) != node(id); });
    for (const SyncCall& sync : syncs) {
      if (cut[sync.operation] && promises(sync, syncs, id)) return true;
    }
    return false;
  }

  // posix and nfs: each name by itself, then renames as a whole
  using Kept = std::map<std::pair<OperationId, bool>, bool>;  // of a rename: which of its names got onto the disk
  void names_left(const Cut& cut, std::map<Place, std::vector<Change>>::const_iterator name, const Names& names,
                  const Kept& kept) {
    if (name == changes_.end()) {
      for (const auto& [half, on_disk] : kept) {
        if (profile_.atomic_rename && kept.at({half.first, !half.second}) != on_disk) return;
      }
      read(names, [&](InodeId file) { return file_left(cut, file, {}); });
      return;
    }
    std::vector<Change> issued;
    std::size_t oldest = 0;  // how many changes are certainly on the disk
    for (const Change& change : name->second) {
      if (!cut[change.operation]) continue;
      issued.push_back(change);
      const bool synced = profile_.kind == ProfileKind::nfs || name_is_synced(cut, name->first.first, change.operation);
      if (synced) oldest = issued.size();
    }
    for (std::size_t done = oldest; done <= issued.size(); ++done) {
      Names more = names;
      const auto base = base_.find(name->first);
      more[name->first] = done > 0 ? issued[done - 1].inode : base == base_.end() ? no_inode : base->second;
      Kept halves = kept;
      for (std::size_t i = 0; i < issued.size(); ++i) {
        if (at(issued[i].operation).op == FileOp::rename) {
          halves[{issued[i].operation, issued[i].inode != no_inode}] = i < done;
        }
      }
      names_left(cut, std::next(name), more, halves);
    }
  }
  // ext4: a prefix of the changes of names
  bool changes_names(OperationId id) const {
    const Operation& operation = at(id);
    return operation.kind == OperationKind::file && !operation.error &&
           (operation.op == FileOp::create || operation.op == FileOp::make_directory ||
            operation.op == FileOp::remove || operation.op == FileOp::rename);
  }
  void crash_ext4(const Cut& cut) {
    std::vector<OperationId> issued;
    for (OperationId id = 0; id < trace_.operations.size(); ++id) {
      if (cut[id] && changes_names(id)) issued.push_back(id);
    }
    for (std::uint32_t chosen = 0; chosen < (1U << issued.size()); ++chosen) {
      std::set<OperationId> committed;
      for (std::size_t i = 0; i < issued.size(); ++i) {
        if ((chosen >> i) & 1U) committed.insert(issued[i]);
      }
      if (journal_may_hold(cut, issued, committed)) read_ext4(cut, committed);
    }
  }
  bool journal_may_hold(const Cut& cut, const std::vector<OperationId>& issued,
                        const std::set<OperationId>& committed) const {
    for (const OperationId id : issued) {
      if (committed.contains(id)) continue;
      for (const OperationId later : committed) {
        if (order_.before(id, later)) return false;
      }
      for (const auto& [directory, syncs] : directory_syncs_) {
        if (name_is_synced(cut, directory, id)) return false;
      }
      for (const auto& [inode, file] : files_) {
        for (const SyncCall& sync : file.syncs) {
          if (sync.is_close || !cut[sync.operation]) continue;
          if (at(id).inode == inode && promises(sync, file.syncs, id)) return false;
          for (const OperationId write : file.writes) {  // the sync commits a size, and the size what came before it
            if (extends(file, write) && !at(write).error && promises(sync, file.syncs, write) &&
                order_.before(id, write)) {
              return false;
            }
          }
        }
      }
      for (const OperationId rename : committed) {
        if (forced_by_replacement(rename, id)) return false;
      }
    }
    return true;
  }
  // The rename commits a size, and that brings the change with it.
  bool forced_by_replacement(OperationId rename, OperationId change) const {
    if (!replaces(rename)) return false;
    const WrittenFile& file = files_.at(at(rename).inode);
    for (const OperationId write : file.writes) {
      if (extends(file, write) && !at(write).error && order_.before(write, rename) && order_.before(change, write)) {
        return true;
      }
    }
    return false;
  }
  bool replaces(OperationId id) const {
    return profile_.replace_flushes && at(id).op == FileOp::rename && replaces_.at(id) != no_inode &&
           files_.contains(at(id).inode);
  }
  void read_ext4(const Cut& cut, const std::set<OperationId>& committed) {
    Names names = base_;
    for (const auto& [where, changes] : changes_) {
      for (const Change& change : changes) {
        if (committed.contains(change.operation)) names[where] = change.inode;
      }
    }
    read(names, [&](InodeId file) { return file_left(cut, file, committed); });
  }
  std::vector<SizeStep> sizes_of(const WrittenFile& file) const {
    return crash::sizes_of(trace_, static_cast<std::int64_t>(file.base.size()), file.writes);
  }
  bool extends(const WrittenFile& file, OperationId id) const {
    return std::ranges::any_of(sizes_of(file), [id](const SizeStep& step) { return step.write == id; });
  }
  std::int64_t end(OperationId write) const {
    return at(write).offset + static_cast<std::int64_t>(at(write).bytes.size());
  }
  bool write_is_synced(const Cut& cut, const WrittenFile& file, OperationId write,
                       const std::set<OperationId>& committed) const {
    if (at(write).error) return false;
    std::vector<SyncCall> syncs;
    for (const SyncCall& sync : file.syncs) {
      const bool own = node(sync.operation) == node(write);
      const bool nfs = profile_.kind == ProfileKind::nfs;
      if ((own || !(nfs || profile_.node_caches)) && (nfs || !sync.is_close || sync.failed)) syncs.push_back(sync);
    }
    for (const SyncCall& sync : syncs) {
      if (cut[sync.operation] && promises(sync, syncs, write)) return true;
    }
    for (const OperationId rename : committed) {
      if (replaces(rename) && at(rename).inode == at(write).inode && order_.before(write, rename)) return true;
    }
    return false;
  }
  // All that the bytes of the file may be.
  Bytes file_left(const Cut& cut, InodeId inode, const std::set<OperationId>& committed) const {
    const WrittenFile& file = files_.at(inode);
    Bytes all;
    std::vector<SizeStep> sizes = {{0, static_cast<std::int64_t>(file.base.size()), true}};
    std::size_t oldest = 0;
    std::vector<OperationId> writes = file.writes;
    std::erase_if(writes, [&cut](OperationId write) { return !cut[write]; });
    for (const SizeStep& step : sizes_of(file)) {
      if (!cut[step.write]) continue;
      sizes.push_back(step);
      if (step.promised && write_is_synced(cut, file, step.write, committed)) oldest = sizes.size() - 1;
    }
    for (std::size_t i = oldest; i < sizes.size(); ++i) {
      bool legal = true;  // ext4: a committed size brings the names before it with it
      for (OperationId id = 0; profile_.kind == ProfileKind::ext4 && i > 0 && id < trace_.operations.size(); ++id) {
        legal = legal && !(changes_names(id) && order_.before(id, sizes[i].write) && !committed.contains(id));
      }
      if (!legal) continue;
      const std::int64_t size = sizes[i].size;
      std::set<OperationId> whole;
      const bool ordered =
          profile_.kind == ProfileKind::ext4 && !profile_.zeros;  // a size comes with the data behind it
      for (std::size_t k = 1; ordered && k <= i; ++k) {
        if (sizes[k].promised) whole.insert(sizes[k].write);
      }
      std::ranges::copy_if(writes, std::inserter(whole, whole.end()),
                           [&](OperationId write) { return write_is_synced(cut, file, write, committed); });
      std::string bytes(static_cast<std::size_t>(size), '\0');
      std::memcpy(bytes.data(), file.base.text().data(), std::min(bytes.size(), file.base.size()));
      write_left(writes, 0, whole, bytes, all);
    }
    return all;
  }

  void write_left(const std::vector<OperationId>& writes, std::size_t next, const std::set<OperationId>& whole,
                  const std::string& bytes, Bytes& all) const {
    if (next == writes.size()) {
      all.insert(digest_of(bytes).hex());
      return;
    }
    const OperationId write = writes[next];
    const auto put = [&](const std::function<char(std::int64_t, char)>& byte_at) {
      std::string more = bytes;
      for (std::int64_t i = at(write).offset; i < std::min(end(write), static_cast<std::int64_t>(bytes.size())); ++i) {
        more[static_cast<std::size_t>(i)] = byte_at(i, bytes[static_cast<std::size_t>(i)]);
      }
      write_left(writes, next + 1, whole, more, all);
    };
    const std::string_view text = at(write).bytes.text();
    const auto written = [&](std::int64_t i) { return text[static_cast<std::size_t>(i - at(write).offset)]; };
    put([&](std::int64_t i, char) { return written(i); });
    if (whole.contains(write)) return;
    const bool zeros = profile_.zeros && profile_.kind != ProfileKind::ext4;
    put([&](std::int64_t, char old) { return old; });
    if (zeros) put([&](std::int64_t, char) { return '\0'; });
    const std::int64_t first = at(write).offset / 512;
    const std::int64_t last = (end(write) - 1) / 512;
    if (!profile_.torn || first == last) return;
    for (const std::int64_t torn : {first, (first + last) / 2, last}) {
      put([&](std::int64_t i, char old) { return i / 512 == torn ? old : written(i); });
      if (zeros) put([&](std::int64_t i, char) { return i / 512 == torn ? '\0' : written(i); });
    }
  }
  // reading what is left
  void read(const Names& names, const std::function<Bytes(InodeId)>& bytes_of) {
    std::map<InodeId, std::vector<std::string>> paths;  // of files
    Content content;
    read_directory(names, root_inode, "", content, paths);
    std::map<InodeId, Bytes> bytes;
    for (const auto& [file, where] : paths) bytes[file] = bytes_of(file);
    combine(content, paths, bytes, paths.begin());
  }
  void read_directory(const Names& names, InodeId directory, const std::string& prefix, Content& content,
                      std::map<InodeId, std::vector<std::string>>& paths) const {
    for (const auto& [where, inode] : names) {
      if (where.first != directory || inode == no_inode) continue;
      const std::string path = prefix + where.second;
      content[path] = std::to_string(inode);
      if (files_.contains(inode)) {
        paths[inode].push_back(path);
      } else {
        read_directory(names, inode, path + "/", content, paths);
      }
    }
  }
  void combine(const Content& content, const std::map<InodeId, std::vector<std::string>>& paths,
               const std::map<InodeId, Bytes>& bytes,
               std::map<InodeId, std::vector<std::string>>::const_iterator file) {
    if (file == paths.end()) {
      std::int64_t& newest = contents_[content];
      newest = std::max(newest, newest_);
      return;
    }
    for (const std::string& digest : bytes.at(file->first)) {
      Content more = content;
      for (const std::string& path : file->second) more[path] += " " + digest;
      combine(more, paths, bytes, std::next(file));
    }
  }

  const Trace& trace_;
  HappensBefore order_;
  ProfileOptions profile_;
  std::vector<OperationId> certain_;
  Names base_;
  Names live_;
  std::map<Place, std::vector<Change>> changes_;
  std::map<OperationId, InodeId> replaces_;
  std::map<InodeId, WrittenFile> files_;
  std::map<InodeId, std::vector<SyncCall>> directory_syncs_;
  std::int64_t newest_ = 0;
  std::map<Content, std::int64_t> contents_;
};

}  // namespace firedrill::crash

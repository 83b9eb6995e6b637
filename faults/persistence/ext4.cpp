// Profile ext4: one ext4 file system (data=ordered, a journal, barriers, delayed allocation: the defaults), seen by all
// nodes of the run.
//
// 1. Changes of names are committed by the journal in transactions, in the order in which they were issued: a crash
//    keeps a prefix of them, and that prefix is itself a cut, no larger than the crash's. A rename is one handle of one
//    transaction and hence atomic (Documentation/filesystems/ext4/journal.rst; fs/ext4/namei.c, ext4_rename).
// 2. With delayed allocation a file's size is committed when its blocks are allocated, which may be long after the
//    write and after later changes of names: a file with its name may stay empty (Documentation/admin-guide/ext4.rst,
//    `delalloc`, `auto_da_alloc`). A size that is committed brings with it all changes of names issued before its
//    write.
// 3. In data=ordered mode the data goes out before the metadata that needs it, so a file with its size has its data.
//    With extents that are allocated unwritten and converted when the I/O ends (dioread_nolock, the default since 5.6)
//    part or all of it may read as zeros: legal with the option `zeros`; without it the documented behaviour. Data that
//    overwrites what is allocated needs no metadata: each sector of it holds the old or the new.
// 4. A successful sync of a file writes its data, then commits the transaction of its inode (fs/ext4/fsync.c:
//    i_sync_tid): its data and size last, the names of it that were made, moved or removed before the sync, too, and
//    with them, by rule 1, all changes of names issued before those. That is behaviour, not a promise of fsync(2).
// 5. A successful sync of a directory forces a full commit: all changes of names before it last, in whatever directory
//    (fs/ext4/fsync.c: "Fastcommit does not really support fsync on directories or other special files. Force a full
//    commit."; lost for some releases and restored by commit 1077b2d53ef5). It forces no file's data or size.
// 6. A rename over an existing name starts the writeback of the new file (auto_da_alloc). ext4.rst calls the data
//    forced before the rename is committed; the code's own history says "It is still not a guarantee, since
//    ext4_alloc_da_blocks() is *not* doing a file integrity sync" (commit 0e202704). So by default it forces nothing;
//    the option `replace_flushes` is the documented version.
// 7. A rename to a new name flushes nothing.
// 8. Closing a file flushes nothing, unless it was truncated to 0 before; the seam cannot truncate.
// 9. After a failed sync (or close) of a file nothing is promised by later syncs of it for what was not synced then.
#include "faults/persistence/rules.h"

namespace firedrill::crash {

namespace {

bool changes_names(const Operation& operation) {
  return operation.kind == OperationKind::file && !operation.error &&
         (operation.op == FileOp::create || operation.op == FileOp::rename || operation.op == FileOp::remove ||
          operation.op == FileOp::make_directory);
}

class Ext4 {
 public:
  Ext4(const Structure& structure, const ProfileOptions& options, Facts& facts)
      : structure_(structure), order_(structure.order()), options_(options), facts_(facts) {
    const std::vector<Operation>& operations = structure.trace().operations;
    for (OperationId id = 0; id < operations.size(); ++id) {
      if (changes_names(operations[id])) metadata_.push_back(id);
    }
  }

  void add() {
    add_journal();
    add_sizes();
    for (const auto& [inode, file] : structure_.files) add_file_syncs(inode, file);
    for (const auto& [inode, directory] : structure_.directories) {  // rule 5
      for (const Sync& sync : directory.syncs) {
        for (const OperationId change : metadata_) commit(sync, directory.syncs, change);
      }
    }
    if (options_.replace_flushes) add_replacements();
  }

 private:
  // The sync commits the change, if it promises anything about it.
  void commit(const Sync& sync, std::span<const Sync> syncs, OperationId change) {
    if (promised(order_, change, sync, syncs)) {
      facts_.implies(facts_.issued(sync.operation), facts_.journaled(change));
    }
  }

  void add_journal() {  // rule 1
    for (const OperationId change : metadata_) {
      for (const OperationId earlier : metadata_) {
        if (order_.before(earlier, change)) facts_.implies(facts_.journaled(change), facts_.journaled(earlier));
      }
    }
    for (std::uint32_t cell = 0; cell < structure_.names.size(); ++cell) {
      const std::vector<NameVersion>& versions = structure_.names[cell].versions;
      for (std::uint32_t v = 1; v < versions.size(); ++v) {
        if (versions[v].lost_by) continue;
        facts_.implies(facts_.named(cell, v), facts_.journaled(*versions[v].operation));
        facts_.implies(facts_.journaled(*versions[v].operation), facts_.named(cell, v));
      }
    }
  }

  void add_sizes() {  // rules 2 and 3
    for (const auto& [inode, file] : structure_.files) {
      for (std::uint32_t v = 1; v < file.sizes.size(); ++v) {
        const OperationId operation = *file.sizes[v].operation;
        for (const OperationId change : metadata_) {
          if (order_.before(change, operation)) facts_.implies(facts_.sized(inode, v), facts_.journaled(change));
        }
      }
      if (options_.zeros) continue;
      for (const std::uint32_t write : file.writes) {
        const WriteItem& item = structure_.writes[write];
        if (item.failed || item.lost_by) continue;
        for (std::uint32_t v = 1; v < file.sizes.size(); ++v) {
          if (file.sizes[v].operation == item.operation && !file.sizes[v].carried)
            facts_.implies(facts_.sized(inode, v), facts_.whole(write));
        }
      }
    }
  }

  void add_file_syncs(InodeId inode, const FileHistory& file) {  // rules 4 and 9
    for (const Sync& sync : file.syncs) {
      if (sync.is_close) continue;
      for (const std::uint32_t write : file.writes) {
        const WriteItem& item = structure_.writes[write];
        if (item.failed || item.lost_by || !promised(order_, item.operation, sync, file.syncs)) continue;
        force_write(structure_, facts_.issued(sync.operation), write, facts_);
      }
      for (const OperationId change : metadata_) {
        if (structure_.trace().operations[change].inode == inode) commit(sync, file.syncs, change);
      }
    }
  }

  void add_replacements() {  // rule 6, as documented
    for (const Twins& twins : structure_.renames) {
      const std::vector<NameVersion>& versions = structure_.names[twins.to_cell].versions;
      if (versions[twins.to_version - 1].inode == no_inode) continue;  // rule 7
      const auto file = structure_.files.find(versions[twins.to_version].inode);
      if (file == structure_.files.end()) continue;
      for (const std::uint32_t write : file->second.writes) {
        const WriteItem& item = structure_.writes[write];
        if (item.failed || item.lost_by || !order_.before(item.operation, twins.operation)) continue;
        force_write(structure_, facts_.journaled(twins.operation), write, facts_);
      }
    }
  }

  const Structure& structure_;
  const HappensBefore& order_;
  const ProfileOptions& options_;
  Facts& facts_;
  std::vector<OperationId> metadata_;
};

}  // namespace

void add_ext4_rules(const Structure& structure, const ProfileOptions& options, Facts& facts) {
  Ext4(structure, options, facts).add();
}

}  // namespace firedrill::crash

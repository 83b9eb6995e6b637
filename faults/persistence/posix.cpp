// Profile posix: nothing lasts without its sync, and what is not synced is independent. The weakest storage that a
// program which follows the standard and the Linux manual may meet; the whole run sees one coherent file system,
// however many nodes it has, so a sync by one node covers what others issued before it.
//
// 1. A successful sync of a file makes its data and its size last: "The fsync() function shall request that all data
//    for the open file descriptor [...] is to be transferred to the storage device"; with _POSIX_SYNCHRONIZED_IO all
//    queued I/O operations of the file are forced to the synchronized I/O completion state (POSIX.1-2024, fsync).
// 2. It does not make its name last: "does not necessarily ensure that the entry in the directory containing the file
//    has also reached disk. For that an explicit fsync() on a file descriptor for the directory is also needed"
//    (fsync(2)). POSIX long had no word on it (Austin Group defect 672).
// 3. A successful sync of a directory makes all changes of its entries that happened before it last, and no file's
//    data. A new directory is an entry of its parent: its own sync does not make its name last.
// 4. A rename is atomic for observers. About crashes the standard is silent, and rename(2) admits "a window in which
//    both oldpath and newpath refer to the file being renamed". Both are legal: `atomic_rename` ties the two names, so
//    that the sync of either directory forces both; without it each is an entry change of its own, and a crash may
//    leave both names, or neither.
// 5. Items that were not synced are independent of each other, in any order: entries, sizes and the data of each write.
//    The size of a file may last without its data (it reads as zeros, or as what lay there before), and its data
//    without the size. Sectors are atomic (Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014, section
//    3: the abstract persistence model in which ALICE weakens atomicity to the block and ordering to nothing).
// 6. Making a directory and removing a file or a directory are changes of an entry like any other. The data of a file
//    that is removed stays as long as a name may still lead to it.
// 7. Closing a file promises nothing. A close that fails reports that an earlier write did, and counts as a failed
//    sync.
// 8. After a failed sync nothing is promised for what was not synced then, whatever later syncs say (fsync(2): an error
//    is reported once, and pages may be marked clean; Rebello et al., "Can Applications Recover from fsync Failures?",
//    USENIX ATC 2020).
#include "faults/persistence/rules.h"

namespace firedrill::crash {

void add_posix_rules(const Structure& structure, const ProfileOptions& options, Facts& facts) {
  const HappensBefore& order = structure.order();
  const auto covering = [&](const std::vector<Sync>& syncs, OperationId item) {
    return options.node_caches ? syncs_of_node(structure, syncs, structure.node_of(item)) : syncs;
  };
  for (std::uint32_t write = 0; write < structure.writes.size(); ++write) {  // rules 1 and 8
    const WriteItem& item = structure.writes[write];
    if (item.failed || item.lost_by) continue;
    const std::vector<Sync> syncs = covering(structure.files.at(item.file).syncs, item.operation);
    for (const Sync& sync : syncs) {
      if (!sync.is_close && promised(order, item.operation, sync, syncs)) {
        force_write(structure, facts.issued(sync.operation), write, facts);
      }
    }
  }
  for (const auto& [inode, directory] : structure.directories) {  // rules 2, 3, 6 and 8
    for (const auto& [name, cell] : directory.cells) {
      const std::vector<NameVersion>& versions = structure.names[cell].versions;
      for (std::uint32_t v = 1; v < versions.size(); ++v) {
        if (versions[v].lost_by) continue;
        const std::vector<Sync> syncs = covering(directory.syncs, *versions[v].operation);
        for (const Sync& sync : syncs) {
          if (promised(order, *versions[v].operation, sync, syncs)) {
            facts.implies(facts.issued(sync.operation), facts.named(cell, v));
          }
        }
      }
    }
  }
  if (options.atomic_rename) tie_renames(structure, facts);  // rule 4
}

}  // namespace firedrill::crash

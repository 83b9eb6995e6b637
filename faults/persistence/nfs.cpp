// Profile nfs: NFS version 3 or 4, hard mounts, a server that exports with `sync`. Each node of the run is one client
// with a cache of its own.
//
// 1. Changes of names (create, make directory, rename, remove) are synchronous: the server has them on stable storage
//    when it replies (RFC 1813, section 4.7: "any data-modifying operation must be synchronous", with the exception of
//    WRITE; section 4.8 says what stable storage is; exports(5), `sync`). Such an operation that is in the cut lasts;
//    one that was under way is taken as not in the cut, or as in it.
// 2. Syncing a directory does nothing: there is nothing left to do.
// 3. Writes stay on the client until fsync, close, a lock or memory pressure (nfs(5), "Close-to-open cache
//    consistency"; "async" is the client's default); the server may hold them unstable until COMMIT (RFC 1813, sections
//    3.3.7, 3.3.21 and 4.8). Until then they, and the sizes that they make, are independent items: lost, there, or
//    torn.
// 4. A sync or a close that succeeds flushes and commits the writes of its own client, and reports their errors. It
//    does nothing for another client's: no client can flush what is in another's cache.
// 5. A sync or close that fails promises nothing, nor do later ones of that client for what was not flushed then. It
//    says nothing about other clients.
// 6. A rename replaces its target atomically on the server.
// 7. A client that dies loses what it had not flushed (node_died); a power loss of everything takes the clients' caches
//    and the unstable writes of the server.
// 8. A node's death in the trace that took names contradicts rule 1: the run was on a disk that caches them (that of
//    engine/sim). What was recorded wins: those names were not yet on the server, so rule 1 does not hold for them,
//    neither before the death, where they are there or not, nor behind it, where they are gone.
//
// Not part of this: what other clients see meanwhile (attribute caches, negative look-ups; nfs(5)) is a fault of
// visibility, not of persistence; an export with `async` breaks rules 1 and 4 (exports(5)): the lying-sync fault.
#include "faults/persistence/rules.h"

namespace firedrill::crash {

void add_nfs_rules(const Structure& structure, const ProfileOptions& /*options*/, Facts& facts) {
  for (std::uint32_t cell = 0; cell < structure.names.size(); ++cell) {  // rules 1, 6 and 8
    const std::vector<NameVersion>& versions = structure.names[cell].versions;
    for (std::uint32_t v = 1; v < versions.size(); ++v) {
      if (versions[v].lost_by) continue;
      facts.implies(facts.issued(*versions[v].operation), facts.named(cell, v));
    }
  }
  for (std::uint32_t write = 0; write < structure.writes.size(); ++write) {  // rules 3 to 5
    const WriteItem& item = structure.writes[write];
    if (item.failed || item.lost_by) continue;
    const std::vector<Sync> syncs =
        syncs_of_node(structure, structure.files.at(item.file).syncs, structure.node_of(item.operation));
    for (const Sync& sync : syncs) {
      if (promised(structure.order(), item.operation, sync, syncs)) {
        force_write(structure, facts.issued(sync.operation), write, facts);
      }
    }
  }
}

}  // namespace firedrill::crash

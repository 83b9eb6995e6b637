// A persistence profile says what a kind of storage promises. Here are its options; the rules themselves stand, as
// prose with their sources and as code, in posix.cpp, ext4.cpp and nfs.cpp.
//
// Rules are implications between facts about one crash. A fact is, for example, "operation 7 is in the cut" or "the
// write of operation 7 is whole on the disk"; a profile adds implications such as "if the sync of operation 9 is in the
// cut, that write is whole". Every rule has one fact on the left, so a set of facts that must hold is closed by
// following the implications, and it is legal if it meets none of the facts that must not hold.
//
// Facts that every profile has, and what always holds between them:
//   issued(o)      operation o is in the cut             implies issued(p) for all p that happened before o
//   named(c, v)    name cell c holds version v or newer  implies named(c, v - 1) and issued(its operation)
//   sized(f, v)    file f has size version v or newer    implies sized(f, v - 1) and issued(its write)
//   whole(w)       write w is on the disk with all bytes implies issued(w)
// Only ext4 uses:
//   journaled(o)   the metadata of operation o is in the committed part of the journal   implies issued(o)
//
// In all profiles: a failed operation on a name did nothing; a write that failed may have left anything of its range
// and is never promised; a failed sync promises nothing, and a later one that succeeds promises nothing of what may
// have been unsynced when it failed (a kernel may mark pages clean when it reports their error: fsync(2), NOTES). Items
// are of the size as issued: a write, one name, one file size. Sectors (512 bytes) are atomic.
//
// A process that is killed changes nothing on the disk: caches are the node's. A node that dies (an operation
// node_died) has its unsynced items decided there: those that it lists are lost, its others are durable, those of other
// nodes stay as they were. The crash itself is a power loss of everything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace firedrill::crash {

enum class ProfileKind : std::uint8_t { posix, ext4, nfs };

std::string_view to_string(ProfileKind kind);
std::optional<ProfileKind> profile_kind_from(std::string_view name);

struct ProfileOptions {
  ProfileKind kind = ProfileKind::posix;
  // posix: both names of a rename change together. ext4 and nfs always do.
  bool atomic_rename = true;
  // posix: every node caches apart, and a sync covers only what its own node issued, as on the disk of engine/sim; else
  // the whole run sees one coherent file system, as the standard has it. nfs always does.
  bool node_caches = false;
  // An unsynced write may also miss its first, its middle or its last sector alone (of those it has more than one of).
  bool torn = true;
  // What is lost may also read as zeros. ext4: a file may have its size and yet read as zeros (dioread_nolock).
  bool zeros = true;
  // ext4: a rename over an existing name commits the new file's data with it (auto_da_alloc as documented).
  bool replace_flushes = false;
};

// "posix, rename atomic, torn, zeros"
std::string describe(const ProfileOptions& options);

inline constexpr std::int64_t sector_size = 512;

}  // namespace firedrill::crash

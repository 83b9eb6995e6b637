// What a profile adds to the common ground: its implications, and what an unsynced write may read as.
#pragma once

#include "faults/persistence/facts.h"
#include "faults/persistence/profile.h"
#include "faults/persistence/structure.h"

namespace firedrill::crash {

void add_posix_rules(const Structure& structure, const ProfileOptions& options, Facts& facts);
void add_ext4_rules(const Structure& structure, const ProfileOptions& options, Facts& facts);
void add_nfs_rules(const Structure& structure, const ProfileOptions& options, Facts& facts);
void add_rules(const Structure& structure, const ProfileOptions& options, Facts& facts);

// Whether lost sectors of any write may read as zeros, and not only as what lay there before.
bool loss_reads_as_zeros(const ProfileOptions& options);

// The fact makes the write whole and its size last.
void force_write(const Structure& structure, FactId cause, std::uint32_t write, Facts& facts);
// Both names of each rename go together.
void tie_renames(const Structure& structure, Facts& facts);

}  // namespace firedrill::crash

// The persistence model decides what a node's death leaves of what it had not synced. Profile posix: nothing lasts
// without its sync, data and names alike. Here its worst case: all of the chosen kinds is lost. Enumerating every legal
// state comes with other choosers.
#pragma once

#include "engine/seam/unsynced.h"

namespace firedrill {

struct UnsyncedLoss {
  bool data = false;   // file contents and sizes
  bool names = false;  // directory entries made, replaced and removed
};

// What is not lost had reached the storage in time.
UnsyncedChooser lose_unsynced(const UnsyncedLoss& loss);

}  // namespace firedrill

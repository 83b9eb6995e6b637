#include "faults/node_loss.h"

namespace firedrill {

UnsyncedChooser lose_unsynced(const UnsyncedLoss& loss) {
  return [loss](const UnsyncedItem& item) { return item.kind == UnsyncedKind::data ? loss.data : loss.names; };
}

}  // namespace firedrill

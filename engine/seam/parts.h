// Parts: everything a rank works with, put together in one place by the world that hosts it. Decorators (faults, memo,
// accounting) are already around the parts; the engine knows of none of them.
#pragma once

#include "engine/seam/clock.h"
#include "engine/seam/collectives.h"
#include "engine/seam/compute.h"
#include "engine/seam/file_system.h"
#include "engine/seam/host.h"
#include "engine/seam/observer.h"
#include "engine/seam/position.h"
#include "engine/seam/store.h"
#include "engine/seam/transport.h"

namespace firedrill {

struct Parts {
  FileSystem& files;
  Transport& transport;
  Collectives& collectives;
  Store& store;
  Compute& compute;
  Clock& clock;
  Host& host;
  Observer& observer;
  Position& position;
};

}  // namespace firedrill

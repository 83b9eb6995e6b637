// What ranks do in the launcher's tests; the order is the payload.
#pragma once

#include "engine/os/launcher.h"

namespace firedrill {

// "exit N", "hang", "throw", "kill" (after an event, by its own hand), "talk" (events until it is told to abort),
// "child" (leaves a process behind), "threads" (exits with the number of its threads).
int run_test_rank(RankStart start);

}  // namespace firedrill

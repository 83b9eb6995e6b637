// What each kind of fault does when it fires: one function a kind, one file a function. To add a kind, add it to
// FaultKind, write its file and enter it in kinds.cpp.
#pragma once

#include "engine/base/error.h"
#include "faults/effects.h"
#include "faults/spec.h"

namespace firedrill {

// Takes the effect and returns what the call reports. Called after the firing was journaled.
using TakeEffect = Error (*)(const Firing& firing, Effects& effects);

Error take_kill(const Firing& firing, Effects& effects);
Error take_kill_node(const Firing& firing, Effects& effects);
Error take_io_error(const Firing& firing, Effects& effects);
Error take_no_space(const Firing& firing, Effects& effects);

TakeEffect effect_of(FaultKind kind);

}  // namespace firedrill

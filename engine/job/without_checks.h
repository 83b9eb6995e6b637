// Layout without what is looked at on the way: what of it decides how lanes, layers and experts lie, and so what a
// checkpoint says of it.
#pragma once

#include "engine/job/layout.h"

namespace firedrill {

// Guard, replica_check and rerun as they are where nobody asks for them.
Layout without_checks(Layout layout);

}  // namespace firedrill

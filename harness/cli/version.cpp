#include "harness/cli/version.h"

#include "firedrill_build.h"  // written by ci/cmake/WriteVersion.cmake

namespace firedrill {

std::string_view version() { return FIREDRILL_VERSION; }
std::string_view commit() { return FIREDRILL_COMMIT; }

}  // namespace firedrill

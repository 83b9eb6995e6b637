// Trouble for the ranks of a check, by name: file systems that break a promise, links that damage or delay, a rank that
// is held back.
#pragma once

#include <string>

#include "harness/preflight/rank.h"

namespace firedrill::preflight {

// Where the name stands.
inline constexpr const char* trouble_variable = "FIREDRILL_TEST_TROUBLE";
ProbeSeams troubled_seams();

// A control group of version 1 with a quarter of a core; made by the test, entered by rank 1.
inline const std::string quarter_group = "/sys/fs/cgroup/cpu/firedrill-preflight-test";

}  // namespace firedrill::preflight

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

// A network of its own, joined to this one by a pair of devices that lets 400 Mbit/s through; made by the test. Rank 3
// lives in it.
inline const std::string own_network = "firedrill-test";
inline const std::string address_outside = "10.199.7.1";
inline const std::string address_inside = "10.199.7.2";

}  // namespace firedrill::preflight

// What an audit and a restore of an existing checkpoint say about it.
#pragma once

#include <string>
#include <vector>

#include "harness/preflight/finding.h"

namespace firedrill::preflight {

// Pure. `said`: of each rank what probe_restore gave. The ranks must have restored the checkpoint that the audit takes
// for the newest, and compared it.
void judge_restore(const std::vector<Json>& said, const std::string& where, CheckResult& result);

}  // namespace firedrill::preflight

// Pre-flight: is this machine, this storage, this layout able to lose a rank and come back exact? All checks of a
// level, one behind the other.
#pragma once

#include <span>

#include "harness/preflight/check.h"

namespace firedrill::preflight {

// In the order in which they run.
std::span<const Check> checks();

// Starts real processes: this program, or the test, must answer the zygote's verb with run_probe_rank for what
// is_probe() says. `ended` is told of each check when it is done. Errors: unavailable (no zygote), invalid_input
// (options.directory is a file, or options.restore holds no checkpoint; nothing was checked).
Result<std::vector<CheckResult>> run_checks(const Options& options,
                                            const std::function<void(const CheckResult&)>& ended);

}  // namespace firedrill::preflight

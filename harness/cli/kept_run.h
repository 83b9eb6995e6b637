// What `--out` kept of runs, opened for the verbs that tell of it. Whatever a user may name is answered: a folder that
// may not be entered, a name that is too long, a FIFO in the place of a file, which would be waited for.
//
// Threads: any. Errors: invalid_input, not_found, with the place and what to give instead.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/result.h"
#include "harness/history/history.h"
#include "harness/plan/plan.h"

namespace firedrill {

struct KeptRun {
  Plan plan;
  Tables tables;
  History history{tables};
};

// A regular file, a directory or nothing; links are followed. An error: something else, or it cannot be looked at.
Result<std::filesystem::file_type> kind_of(const std::filesystem::path& path);
// Nothing if it is a regular file or not there; else why it is not read.
Status may_be_read(const std::filesystem::path& file);

// The run with its history; null: the folder holds no history.jsonl, as that of several runs does not.
Result<std::unique_ptr<KeptRun>> open_kept_run(const std::filesystem::path& folder);

}  // namespace firedrill

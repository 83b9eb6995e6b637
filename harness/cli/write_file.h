// Files that the command line is asked to write: a report, a page, a trace.
//
// Threads: any, on different files. Errors: invalid_input for a directory, io_error else.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/result.h"

namespace firedrill {

// A regular file, or one that is not there yet, is replaced as a whole: a reader never sees half of it, and nothing is
// left of an attempt that fails. What is no regular file (a device, a FIFO, a link) is written into and stays what it
// is.
Status write_file(const std::string& file, std::string_view text);

// What is wrong with them before anything is written: a directory, one in a directory that is not there or cannot be
// written to, one regular file for two options, or - for another option than --json. Each is an option's name and its
// value; an empty value is not there. `made` is the directory that --out makes before anything is written, and in which
// files of its own are kept.
std::vector<std::string> mistakes_in_targets(const std::vector<std::pair<std::string, std::string>>& targets,
                                             const std::filesystem::path& made = {});
// Which of them would write over what is kept there, a folder of a run, a root of checkpoints or a file: its own files,
// and all below its disk or its checkpoints.
std::vector<std::string> mistakes_in_targets_of(const std::filesystem::path& kept,
                                                const std::vector<std::pair<std::string, std::string>>& targets);

}  // namespace firedrill

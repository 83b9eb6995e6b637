// Whole files and marks: read with a bound, written and made durable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/ckpt/id.h"
#include "engine/seam/file_system.h"

namespace firedrill {

// Reading files whose size is bounded before anything is allocated. Errors: as open and read; corrupted (longer than
// `size_max`, or shorter than its own size).
Result<Value> read_whole(FileSystem& files, std::string_view path, std::int64_t size_max);

// The same past the cache, and to the end of the file wherever that is: the size that a node is told may be an old one,
// and what is made of a part would be less than was there.
Result<Value> read_to_end(FileSystem& files, std::string_view path, std::int64_t size_max);

// Creates `path`, writes, syncs, closes. Its name is not durable yet.
Status write_synced(FileSystem& files, std::string_view path, const Value& bytes);

// Reads back, past the cache, what was written to `path`. Errors: corrupted (it is something else).
Status expect_written(FileSystem& files, std::string_view path, const Value& bytes);

// An empty file in `directory`, durable with its name. One that is there already may be there for now only, since no
// later sync makes up for one that failed on its name: another one takes its place.
Status write_mark(FileSystem& files, std::string_view directory, const CheckpointId& id);

// The same, durable only with the next sync of the directory.
Status write_name(FileSystem& files, std::string_view directory, const CheckpointId& id);

// The file at `path` with these bytes, synced; its name is not durable yet. A file that is there already is there all
// the time, with its old bytes or with these. `path` is the name of a checkpoint in one of its directories.
Status create_or_replace(FileSystem& files, const std::string& path, const Value& bytes);
// The same for a file that is there.
Status replace(FileSystem& files, const std::string& path, const Value& bytes);

// Removes a directory and the files in it; what is not there is no error.
Status remove_tree(FileSystem& files, const std::string& directory);

// `removed`, but that there was nothing to remove is no error.
Status removed_or_absent(Status removed);

// Names in a directory; none if it is not there.
Result<std::vector<std::string>> names_in(FileSystem& files, std::string_view directory);

// Makes directories that are missing under the root, and syncs the root. The first one holds something only once that
// sync has gone well. Until then a name that is there may be one that an attempt's sync failed on, or that it made and
// never came to sync, and no later sync promises anything of those: so each empty one is made anew. Attempts do not
// overlap here: whoever starts one has seen to it that no rank of the one before is left.
Status make_directories(FileSystem& files, const std::vector<std::string>& there,
                        const std::vector<std::string_view>& wanted);

}  // namespace firedrill

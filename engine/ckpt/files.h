// Reading files whose size is bounded before anything is allocated.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/base/result.h"
#include "engine/seam/file_system.h"

namespace firedrill {

// Errors: as open and read; corrupted (longer than `size_max`, or shorter than its own size).
Result<Value> read_whole(FileSystem& files, std::string_view path, std::int64_t size_max);

}  // namespace firedrill

// Decoding one checkpoint: its manifest's text and its shard files in, its contents out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/value.h"
#include "engine/seam/file_system.h"
#include "harness/audit/format.h"

namespace firedrill::auditing {

// A file up to this size is read in one piece; a larger one in pieces of chunk_size. At most `held_max` bytes of whole
// files are held at once.
inline constexpr std::int64_t whole_file_max = std::int64_t{64} << 20;
inline constexpr std::int64_t held_max = std::int64_t{256} << 20;
inline constexpr std::int64_t chunk_size = std::int64_t{4} << 20;
inline constexpr std::int64_t manifest_size_max = std::int64_t{256} << 20;

// A shard file as it lies on the disk.
struct ShardFile {
  std::string problem;  // it cannot be opened or read: why
  std::int64_t size = 0;
  Digest digest;               // of all bytes
  Value whole;                 // all bytes, if it is small enough
  std::unique_ptr<File> file;  // else: to read from
};

// `held` counts the bytes of whole files.
ShardFile open_shard(FileSystem& files, const std::string& path, std::int64_t expected, std::int64_t& held);

// The whole of a file of at most `size_max` bytes.
Result<Value> read_file(FileSystem& files, const std::string& path, std::int64_t size_max);

// `files` are the manifest's shards, in its order. `id` is the manifest's name.
std::shared_ptr<const CheckpointContents> decode_contents(const CheckpointId& id, const Manifest& manifest,
                                                          const std::vector<ShardFile>& files);

// Contents of which nothing but a problem is known.
std::shared_ptr<const CheckpointContents> no_contents(std::string problem);

}  // namespace firedrill::auditing

// The records of a checkpoint root: files by their names, or the records of its RocksDB catalog, which have the names
// that the files would have (engine/ckpt/FORMAT.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/base/result.h"
#include "engine/rocks/record_store.h"
#include "engine/seam/file_system.h"

namespace firedrill::auditing {

inline constexpr std::string_view catalog_directory = "catalog";
inline constexpr std::string_view catalog_schema_name = "schema";
inline constexpr std::string_view catalog_schema = "firedrill.catalog/1";

// What was decoded before, by the digest of all bytes it came from. Looked up only, never walked.
using DecodedCatalogs = std::unordered_map<Digest, Value>;

class Records {
 public:
  // Errors: of a catalog that cannot be read; mismatch (files in manifests/ as well as a catalog). not_found does not
  // come.
  static Result<Records> of(FileSystem& files, DecodedCatalogs& decoded);
  // A catalog that cannot be read: no name is in it.
  static Records none(FileSystem& files) { return Records(files, RecordView(Value::pack({Value::copy_of("")}))); }

  bool has_catalog() const { return catalog_.has_value(); }
  // The names in manifests, validated, rejected, tombstones or attempts. Errors: as FileSystem::list.
  Result<std::vector<std::string>> names(const std::string& directory) const;
  // Errors: as opening and reading; corrupted (longer than `size_max`).
  Result<Value> text(const std::string& path, std::int64_t size_max) const;

 private:
  Records(FileSystem& files, std::optional<RecordView> catalog) : files_(&files), catalog_(std::move(catalog)) {}

  FileSystem* files_;
  std::optional<RecordView> catalog_;
};

}  // namespace firedrill::auditing

#include "harness/audit/records.h"

#include <fmt/format.h>

#include "harness/audit/contents.h"

namespace firedrill::auditing {
namespace {

bool is_directory(FileSystem& files, std::string_view path) {
  const auto info = files.stat(path);
  return info && info->kind == FileKind::directory;
}

// A catalog that was never finished holds nothing, unless shards say that there was one.
Result<Value> nothing_yet(FileSystem& files) {
  const auto shards = files.list("shards");
  if (!shards && !shards.failed_with(Code::not_found)) return shards.error();
  if (!shards || shards->empty()) return Value::pack({Value::copy_of("")});
  return Error{.code = Code::corrupted, .message = "there are shards, and the catalog's CURRENT is missing"};
}

Status check_one_kind(FileSystem& files) {
  const auto manifests = files.list("manifests");
  if (!manifests || manifests->empty()) return {};
  return Error{.code = Code::mismatch,
               .message =
                   "manifests/ holds files, and there is a catalog/ as well: which of them holds the records "
                   "cannot be told",
               .hint = "a root has one of the two: move the other one away"};
}

}  // namespace

Result<Records> Records::of(FileSystem& files, DecodedCatalogs& decoded) {
  if (is_directory(files, catalog_directory)) {
    FD_TRY_VOID(check_one_kind(files));
  } else {
    // A root of files, unless it has shards and neither kind of record.
    if (is_directory(files, "manifests") || !is_directory(files, "shards")) return Records(files, std::nullopt);
  }
  const auto loaded = load_store(files, catalog_directory);
  if (!loaded && !loaded.failed_with(Code::not_found)) return loaded.error();
  if (!loaded) {
    FD_TRY(const Value nothing, nothing_yet(files));
    return Records(files, RecordView(nothing));
  }
  Value& known = decoded[loaded->digest()];
  if (!known) {
    auto records = decode_store(*loaded);
    if (records.failed_with(Code::not_found)) records = nothing_yet(files);
    if (!records) return records.error();
    known = *std::move(records);
  }
  RecordView view(known);
  const auto schema = view.find(catalog_schema_name);
  if (view.size() > 0 && (!schema || schema->text() != catalog_schema)) {
    return Error{.code = Code::corrupted,
                 .message = fmt::format("the catalog says it is \"{}\", not {}",
                                        schema ? schema->text() : std::string_view(), catalog_schema)};
  }
  return Records(files, std::move(view));
}

Result<std::vector<std::string>> Records::names(const std::string& directory) const {
  if (!catalog_) return files_->list(directory);
  std::vector<std::string> names;
  const auto [first, last] = catalog_->with_prefix(directory + "/");
  for (std::size_t i = first; i < last; ++i) names.emplace_back(catalog_->name(i).substr(directory.size() + 1));
  return names;
}

Result<Value> Records::text(const std::string& path, std::int64_t size_max) const {
  if (!catalog_) return read_file(*files_, path, size_max);
  auto record = catalog_->find(path);
  if (record) return *std::move(record);
  return Error{.code = Code::not_found, .message = fmt::format("the catalog holds no {}", path)};
}

}  // namespace firedrill::auditing

#include "harness/audit/rebuild.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/base/text.h"
#include "harness/audit/contents.h"
#include "harness/audit/records.h"

namespace firedrill {
namespace {

using auditing::catalog_directory;
using auditing::Records;

constexpr std::string_view unfinished_directory = "catalog.rebuilt";
constexpr int kept_max = 1000;  // damaged catalogs that may lie in one root

Error refused(std::string message, std::string hint = {}) {
  return {.code = Code::invalid_input, .message = std::move(message), .hint = std::move(hint)};
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Why the catalog that is there cannot be used. Errors: it can.
Result<std::string> trouble_with_catalog(FileSystem& files, const std::vector<std::string>& names) {
  if (contains(names, "manifests")) {
    return refused("this root keeps its records in files: there is no catalog to rebuild");
  }
  auditing::DecodedCatalogs decoded;
  const auto records = Records::of(files, decoded);
  if (records) {
    return refused(records->has_catalog() ? "the catalog that is there can be read, and is left as it is"
                                          : "there is no checkpoint root here");
  }
  if (records.error().code != Code::corrupted) return records.error();
  return records.error().message;
}

Status remove_directory(FileSystem& files, const std::string& directory) {
  FD_TRY(const auto names, files.list(directory));
  for (const std::string& name : names) FD_TRY_VOID(files.remove(directory + "/" + name));
  return files.remove(directory);
}

Status write_catalog(FileSystem& files, const std::vector<CheckpointId>& ids) {
  std::vector<RecordChange> changes = {
      {.name = std::string(auditing::catalog_schema_name), .value = Value::copy_of(auditing::catalog_schema)}};
  std::set<std::int64_t> attempts;
  for (const CheckpointId& id : ids) {
    const std::string name = to_string(id);
    FD_TRY(Value manifest,
           auditing::read_file(files, fmt::format("shards/{}/manifest", name), auditing::manifest_size_max));
    changes.push_back({.name = "manifests/" + name, .value = std::move(manifest)});
    changes.push_back({.name = "validated/" + name, .value = Value::copy_of("1")});
    attempts.insert(id.attempt);
  }
  for (const std::int64_t attempt : attempts) {
    changes.push_back({.name = fmt::format("attempts/{}", attempt), .value = Value::copy_of("1")});
  }
  FD_TRY_VOID(files.make_directory(unfinished_directory));
  FD_TRY(const auto store, RecordStore::open(files, unfinished_directory));
  return store->write(changes);
}

Result<std::string> put_aside(FileSystem& files, const std::vector<std::string>& names) {
  if (!contains(names, catalog_directory)) return std::string();
  for (int number = 1; number <= kept_max; ++number) {
    std::string kept = fmt::format("{}.damaged-{}", catalog_directory, number);
    if (contains(names, kept)) continue;
    FD_TRY_VOID(files.rename(catalog_directory, kept));
    return kept;
  }
  return refused(fmt::format("{} damaged catalogs lie here already", kept_max), "move them away");
}

}  // namespace

Result<RebuiltCatalog> rebuild_catalog(FileSystem& files) {
  RebuiltCatalog rebuilt;
  FD_TRY(const std::vector<std::string> names, files.list(""));
  FD_TRY(rebuilt.why, trouble_with_catalog(files, names));
  FD_TRY(const std::vector<std::string> directories, files.list("shards"));
  Auditor auditor;
  for (const std::string& directory : directories) {
    const auto id = checkpoint_id_from(directory);
    if (!id) continue;
    FD_TRY(const std::vector<std::string> there, files.list("shards/" + directory));
    if (!contains(there, "manifest") || !contains(there, "validated")) {
      rebuilt.left_out.push_back({.id = *id, .why = "it has no copy of a manifest and a mark, so was not validated"});
      continue;
    }
    const auto contents = auditor.decode_copy(files, *id);
    if (contents->intact) {
      rebuilt.taken.push_back(*id);
    } else {
      rebuilt.left_out.push_back({.id = *id, .why = join(contents->problems, "; ")});
    }
  }
  std::sort(rebuilt.taken.begin(), rebuilt.taken.end());
  std::sort(rebuilt.left_out.begin(), rebuilt.left_out.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  if (rebuilt.taken.empty()) {
    return refused(fmt::format("none of the {} shard directories can be taken over", rebuilt.left_out.size()),
                   "nothing was changed");
  }
  if (contains(names, unfinished_directory)) FD_TRY_VOID(remove_directory(files, std::string(unfinished_directory)));
  FD_TRY_VOID(write_catalog(files, rebuilt.taken));
  FD_TRY(rebuilt.kept_as, put_aside(files, names));
  FD_TRY_VOID(files.rename(unfinished_directory, catalog_directory));
  FD_TRY_VOID(files.sync_directory(""));
  return rebuilt;
}

std::string in_words(const RebuiltCatalog& rebuilt) {
  std::string text = fmt::format("the catalog could not be read: {}\n", rebuilt.why);
  for (const CheckpointId& id : rebuilt.taken) text += fmt::format("rebuilt   {}\n", to_string(id));
  for (const auto& [id, why] : rebuilt.left_out) text += fmt::format("left out  {}: {}\n", to_string(id), why);
  if (!rebuilt.kept_as.empty()) text += fmt::format("the old catalog is kept as {}\n", rebuilt.kept_as);
  return text;
}

}  // namespace firedrill

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

struct OldCatalog {
  std::string trouble;             // why it cannot be used
  std::vector<RecordChange> kept;  // its records that stay true, if it can be read
  bool rejects(const std::string& id) const { return has("rejected/" + id); }
  bool buried(const std::string& id) const { return has("tombstones/" + id); }

 private:
  bool has(const std::string& name) const {
    return std::any_of(kept.begin(), kept.end(), [&](const RecordChange& record) { return record.name == name; });
  }
};

Result<std::vector<RecordChange>> records_that_stay(const Records& records) {
  std::vector<RecordChange> kept;
  for (const std::string directory : {"rejected", "tombstones", "attempts"}) {
    FD_TRY(const auto names, records.names(directory));
    for (const std::string& name : names) {
      std::string path = directory + "/" + name;
      FD_TRY(Value value, records.text(path, auditing::manifest_size_max));
      kept.push_back({.name = std::move(path), .value = std::move(value)});
    }
  }
  return kept;
}

// Errors: the catalog that is there can be used, or is none of ours.
Result<OldCatalog> look_at_old(FileSystem& files, const std::vector<std::string>& names) {
  if (contains(names, "manifests") && !contains(names, catalog_directory)) {
    return refused("this root keeps its records in files: there is no catalog to rebuild");
  }
  auditing::DecodedCatalogs decoded;
  const auto records = Records::of(files, decoded);
  if (!records && records.error().code != Code::corrupted) return records.error();
  if (!records) return OldCatalog{.trouble = records.error().message};
  if (!records->has_catalog()) return refused("there is no checkpoint root here");
  std::vector<std::string> lost;
  for (const AuditedCheckpoint& checkpoint : audit_directory(files).checkpoints) {
    if (checkpoint.lost_by_catalog) lost.push_back(to_string(checkpoint.id));
  }
  if (lost.empty()) return refused("the catalog that is there can be read, and is left as it is");
  FD_TRY(auto kept, records_that_stay(*records));
  return OldCatalog{.trouble = fmt::format("it has lost {}", join(lost, ", ")), .kept = std::move(kept)};
}

// Takes the checkpoint over or leaves it out.
Status judge(FileSystem& files, Auditor& auditor, const CheckpointId& id, const OldCatalog& old,
             RebuiltCatalog& rebuilt) {
  const std::string name = to_string(id);
  const auto leave_out = [&](std::string why, bool lost) {
    rebuilt.left_out.push_back({.id = id, .why = std::move(why), .lost = lost});
    return Status();
  };
  if (old.rejects(name)) return leave_out("the old catalog rejects it", false);
  if (old.buried(name)) return leave_out("it was being deleted", false);
  FD_TRY(const std::vector<std::string> there, files.list("shards/" + name));
  const bool has_manifest = contains(there, "manifest");
  const bool has_mark = contains(there, "validated");
  if (!has_manifest && !has_mark) {
    return leave_out("it has no copy of a manifest and a mark, so was not validated", false);
  }
  if (!has_manifest) return leave_out("its copy of the manifest is missing", true);
  if (!has_mark) return leave_out("its copy of the mark `validated` is missing", true);
  const auto contents = auditor.decode_copy(files, id);
  if (!contents->intact) return leave_out(join(contents->problems, "; "), true);
  rebuilt.taken.push_back(id);
  return {};
}

Status remove_directory(FileSystem& files, const std::string& directory) {
  FD_TRY(const auto names, files.list(directory));
  for (const std::string& name : names) FD_TRY_VOID(files.remove(directory + "/" + name));
  return files.remove(directory);
}

// `changes` are the records taken over from the old one.
Status write_catalog(FileSystem& files, const std::vector<CheckpointId>& ids, std::vector<RecordChange> changes) {
  changes.push_back(
      {.name = std::string(auditing::catalog_schema_name), .value = Value::copy_of(auditing::catalog_schema)});
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
  FD_TRY(OldCatalog old, look_at_old(files, names));
  rebuilt.why = old.trouble;
  if (!contains(names, "shards")) return refused("there are no shards to rebuild a catalog from");
  FD_TRY(const std::vector<std::string> directories, files.list("shards"));
  Auditor auditor;
  for (const std::string& directory : directories) {
    if (const auto id = checkpoint_id_from(directory)) FD_TRY_VOID(judge(files, auditor, *id, old, rebuilt));
  }
  std::sort(rebuilt.taken.begin(), rebuilt.taken.end());
  std::sort(rebuilt.left_out.begin(), rebuilt.left_out.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  if (rebuilt.taken.empty()) {
    std::string message = fmt::format("none of the {} shard directories can be taken over", rebuilt.left_out.size());
    for (const auto& left : rebuilt.left_out) message += fmt::format("; {}: {}", to_string(left.id), left.why);
    return refused(std::move(message), "nothing was changed");
  }
  if (contains(names, unfinished_directory)) FD_TRY_VOID(remove_directory(files, std::string(unfinished_directory)));
  FD_TRY_VOID(write_catalog(files, rebuilt.taken, std::move(old.kept)));
  FD_TRY(rebuilt.kept_as, put_aside(files, names));
  FD_TRY_VOID(files.rename(unfinished_directory, catalog_directory));
  FD_TRY_VOID(files.sync_directory(""));
  return rebuilt;
}

bool RebuiltCatalog::complete() const {
  return std::none_of(left_out.begin(), left_out.end(), [](const LeftOut& left) { return left.lost; });
}

std::string in_words(const RebuiltCatalog& rebuilt) {
  std::string text = fmt::format("the old catalog was of no use: {}\n", rebuilt.why);
  for (const CheckpointId& id : rebuilt.taken) text += fmt::format("rebuilt   {}\n", to_string(id));
  for (const auto& left : rebuilt.left_out) {
    text += fmt::format("{}  {}: {}\n", left.lost ? "LOST    " : "left out", to_string(left.id), left.why);
  }
  if (!rebuilt.kept_as.empty()) text += fmt::format("the old catalog is kept as {}\n", rebuilt.kept_as);
  return text;
}

}  // namespace firedrill

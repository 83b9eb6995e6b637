// The catalog of files: a name in a directory is a record, made durable by a sync of the directory.
#include <fmt/format.h>

#include <algorithm>

#include "engine/base/text.h"
#include "engine/ckpt/catalog.h"
#include "engine/ckpt/files.h"
#include "engine/ckpt/manifest.h"
#include "engine/ckpt/survey.h"

namespace firedrill {
namespace {

// That the directory is not there is told apart: it may be a root of another kind.
Result<std::optional<std::vector<CheckpointId>>> listed(FileSystem& files, std::string_view directory) {
  auto names = files.list(directory);
  if (names.failed_with(Code::not_found)) return std::optional<std::vector<CheckpointId>>();
  if (!names) return names.error();
  return std::optional(ids_among(*names));
}

Result<std::vector<CheckpointId>> ids_in(FileSystem& files, std::string_view directory) {
  FD_TRY(auto ids, listed(files, directory));
  return std::move(ids).value_or(std::vector<CheckpointId>());
}

// The attempt whose temporary file this is: an id, or "<n>.seen".
std::optional<std::int64_t> attempt_of_temporary(const std::string& name) {
  if (const auto id = checkpoint_id_from(name)) return id->attempt;
  if (const auto id = checkpoint_id_from("0-" + name.substr(0, name.find('.')) + "-0")) return id->attempt;
  return std::nullopt;
}

class FilesCatalog final : public Catalog {
 public:
  Result<Survey> survey(FileSystem& files, Compute&) override {
    Survey survey;
    FD_TRY(auto manifests, listed(files, directory::manifests));
    if (!manifests && files.stat(catalog_directory)) return other_catalog(CatalogKind::files);
    survey.manifests = std::move(manifests).value_or(std::vector<CheckpointId>());
    FD_TRY(survey.validated, ids_in(files, directory::validated));
    FD_TRY(survey.rejected, ids_in(files, directory::rejected));
    FD_TRY(survey.tombstones, ids_in(files, directory::tombstones));
    FD_TRY(const auto names, names_in(files, directory::attempts));
    for (const std::string& name : names) {
      FD_TRY_VOID(add_attempt(survey, name, [&files, &name] {
        return read_whole(files, path_in(directory::attempts, name), seen_size_max);
      }));
    }
    sort_attempts(survey);
    return survey;
  }

  Result<Value> manifest(FileSystem& files, Compute&, const CheckpointId& id, bool drop_caches) override {
    const std::string path = path_in(directory::manifests, id);
    if (drop_caches) {  // what is missing is found out by opening it
      if (Status dropped = files.drop_cache(path); !dropped && !dropped.failed_with(Code::not_found)) {
        return dropped.error();
      }
    }
    return read_whole(files, path, manifest_size_max);
  }

  Status claim(FileSystem& files, int attempt) override {
    FD_TRY(const std::vector<std::string> there, files.list(""));
    if (std::find(there.begin(), there.end(), catalog_directory) != there.end()) {
      return other_catalog(CatalogKind::files);
    }
    FD_TRY_VOID(make_directories(files, there,
                                 {directory::attempts, directory::manifests, directory::rejected, directory::shards,
                                  directory::tmp, directory::tombstones, directory::validated}));
    const std::string path = path_in(directory::attempts, std::to_string(attempt));
    auto file = files.create(path);
    if (file.failed_with(Code::already_exists)) return claimed_before(attempt);
    if (!file) return file.error();
    FD_TRY_VOID((*file)->sync());
    FD_TRY_VOID((*file)->close());
    return files.sync_directory(directory::attempts);
  }

  Status commit(FileSystem& files, const CheckpointId& id, const Value& manifest, bool& issued) override {
    const std::string temporary = path_in(directory::tmp, id);
    FD_TRY_VOID(write_synced(files, temporary, manifest));
    issued = true;
    FD_TRY_VOID(files.rename(temporary, path_in(directory::manifests, id)));
    return files.sync_directory(directory::manifests);
  }

  Status mark_validated(FileSystem& files, const CheckpointId& id) override {
    return write_mark(files, directory::validated, id);
  }
  Status mark_rejected(FileSystem& files, const CheckpointId& id) override {
    return write_mark(files, directory::rejected, id);
  }

  // To a temporary name first, and read back before it counts: a torn record would hide every checkpoint.
  Status record_seen(FileSystem& files, const Survey::Seen& seen) override {
    const std::string name = std::to_string(seen.attempt) + ".seen";
    const std::string temporary = path_in(directory::tmp, name);
    const Value record = encode_seen(seen);
    FD_TRY_VOID(write_synced(files, temporary, record));
    FD_TRY_VOID(expect_written(files, temporary, record));
    FD_TRY_VOID(files.rename(temporary, path_in(directory::attempts, name)));
    return files.sync_directory(directory::attempts);
  }

  // What is found may be there for now only: a sync does not make up for one that failed on a name. So a mark is made
  // anew; a manifest without one is committed once more, byte for byte. One with its mark is durable, or the mark would
  // not have been written.
  Status settle(FileSystem& files, const CheckpointId& id, const std::vector<CheckpointId>& validated) override {
    if (std::find(validated.begin(), validated.end(), id) == validated.end()) FD_TRY_VOID(commit_again(files, id));
    FD_TRY(const auto file, files.open(path_in(directory::manifests, id)));
    FD_TRY_VOID(file->sync());
    FD_TRY_VOID(file->close());
    FD_TRY_VOID(files.sync_directory(directory::manifests));
    for (const CheckpointId& marked : validated) FD_TRY_VOID(write_name(files, directory::validated, marked));
    if (!validated.empty()) FD_TRY_VOID(files.sync_directory(directory::validated));
    FD_TRY_VOID(files.sync_directory(directory::rejected));
    return files.sync_directory(directory::tombstones);
  }

  Status bury(FileSystem& files, const std::vector<CheckpointId>& ids) override {
    for (const CheckpointId& id : ids) {
      FD_TRY_VOID(write_name(files, directory::tombstones, id));
    }
    return files.sync_directory(directory::tombstones);
  }

  // A name that is gone already may be gone for now only: the sync of an earlier removal may have failed, and no later
  // sync makes up for it. So it is made and removed once more, behind its tombstone.
  Status unlist(FileSystem& files, const std::vector<CheckpointId>& ids) override {
    for (const CheckpointId& id : ids) {
      const std::string path = path_in(directory::manifests, id);
      Status removed = files.remove(path);
      if (removed.failed_with(Code::not_found)) {
        const auto made = files.create(path);
        if (made) FD_TRY_VOID((*made)->close());
        if (!made && !made.failed_with(Code::already_exists)) return made.error();
        removed = files.remove(path);
      }
      if (!removed) return removed;
    }
    return files.sync_directory(directory::manifests);
  }
  Status forget(FileSystem& files, const std::vector<CheckpointId>& ids) override {
    return remove_all(files, directory::validated, ids);
  }
  Status remove_tombstones(FileSystem& files, const std::vector<CheckpointId>& ids) override {
    return remove_all(files, directory::tombstones, ids);
  }

  Status sweep(FileSystem& files, int attempt, const Goes& goes) override {
    for (const std::string_view marks : {directory::validated, directory::rejected, directory::tombstones}) {
      FD_TRY(std::vector<CheckpointId> ids, ids_in(files, marks));
      std::erase_if(ids, [&](const CheckpointId& id) { return !goes(marks, id); });
      FD_TRY_VOID(remove_all(files, marks, ids));
    }
    FD_TRY(const auto temporaries, names_in(files, directory::tmp));
    for (const std::string& name : temporaries) {
      const auto owner = attempt_of_temporary(name);
      if (owner && *owner < attempt) FD_TRY_VOID(removed_or_absent(files.remove(path_in(directory::tmp, name))));
    }
    return {};
  }

 private:
  static Status commit_again(FileSystem& files, const CheckpointId& id) {
    const std::string path = path_in(directory::manifests, id);
    FD_TRY(const Value manifest, read_to_end(files, path, manifest_size_max));
    FD_TRY_VOID(check_whole_manifest(manifest.text()));
    return replace(files, path, manifest);
  }

  static Status remove_all(FileSystem& files, std::string_view directory, const std::vector<CheckpointId>& ids) {
    for (const CheckpointId& id : ids) FD_TRY_VOID(removed_or_absent(files.remove(path_in(directory, id))));
    return {};
  }
};

}  // namespace

std::unique_ptr<Catalog> make_files_catalog() { return std::make_unique<FilesCatalog>(); }

std::unique_ptr<Catalog> make_catalog(CatalogKind kind) {
  return kind == CatalogKind::files ? make_files_catalog() : make_rocksdb_catalog();
}

Error claimed_before(int attempt) {
  return Error{.code = Code::already_exists,
               .message = fmt::format("attempt {} was claimed before: {} exists", attempt,
                                      path_in(directory::attempts, std::to_string(attempt))),
               .hint = "every launch needs an attempt number of its own"};
}

Error other_catalog(CatalogKind wanted) {
  const auto name = [](CatalogKind kind) { return kind == CatalogKind::files ? "files" : "rocksdb"; };
  const CatalogKind there = wanted == CatalogKind::files ? CatalogKind::rocksdb : CatalogKind::files;
  return Error{.code = Code::mismatch,
               .message = fmt::format("this directory was made with checkpoint.catalog {}, the job says {}",
                                      name(there), name(wanted)),
               .hint = fmt::format("set checkpoint.catalog to {}, or begin in a new directory", name(there))};
}

}  // namespace firedrill

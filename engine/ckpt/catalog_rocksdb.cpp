// The RocksDB catalog: each record under the name that its file would have in the catalog of files, each writing call
// one synced batch. Opening for writing (RecordStore) makes everything durable that was found, so nothing is left to
// settle in the catalog itself.
//
// Readers never open the store for writing: they read its files as their own node shows them, and RocksDB then works on
// these bytes alone, in a kernel, so that it is asked once for each content.
#include <fmt/format.h>

#include <algorithm>

#include "engine/ckpt/agree.h"
#include "engine/ckpt/catalog.h"
#include "engine/ckpt/files.h"
#include "engine/ckpt/survey.h"
#include "engine/rocks/record_store.h"

namespace firedrill {
namespace {

constexpr std::string_view schema_name = "schema";
constexpr std::string_view schema = "firedrill.catalog/1";
constexpr std::string_view mark = "1";

Result<Value> run_decode(std::span<const std::byte>, std::span<Value> inputs) { return decode_store(inputs[0]); }
constexpr Kernel decode_kernel = make_kernel("ckpt.read_catalog", KernelKind::codec, run_decode);

RecordChange put(std::string_view directory, std::string_view name, std::string_view text = mark) {
  return {.name = path_in(directory, name), .value = Value::copy_of(text)};
}
RecordChange put(std::string_view directory, const CheckpointId& id) { return put(directory, to_string(id)); }
RecordChange removal(std::string_view directory, const CheckpointId& id) { return {.name = path_in(directory, id)}; }

Status check_schema(const RecordView& records) {
  if (records.size() == 0) return {};
  const auto there = records.find(schema_name);
  if (there && there->text() == schema) return {};
  return Error{.code = there ? Code::mismatch : Code::corrupted,
               .message = fmt::format("the catalog says it is {}, this program reads {}",
                                      there ? there->text() : std::string_view("nothing"), schema),
               .hint = "resume with the program that wrote it, or a newer one"};
}

std::vector<CheckpointId> ids_under(const RecordView& records, std::string_view directory) {
  const std::string prefix = path_in(directory, std::string_view());
  const auto [first, last] = records.with_prefix(prefix);
  std::vector<std::string> names;
  for (std::size_t i = first; i < last; ++i) names.emplace_back(records.name(i).substr(prefix.size()));
  return ids_among(names);
}

// A catalog that was never finished holds no record; with shards beside it, somebody has lost it.
Status check_not_lost(FileSystem& files) {
  FD_TRY(const auto shards, names_in(files, directory::shards));
  if (shards.empty()) return {};
  const auto current = files.stat(path_in(catalog_directory, "CURRENT"));
  // On the marked line of this expression gcov counts only its unwinding.
  return Error{
      .code = Code::corrupted,
      .message = fmt::format("{}/ holds {} directories, and {}", directory::shards, shards.size(),  // GCOV_EXCL_LINE
                             current ? "the catalog no record" : "catalog/CURRENT is missing"),
      .hint = "restore the catalog from a copy, or rebuild it: firedrill audit DIR --rebuild-catalog"};
}

// The records as this disk shows them; none if the catalog was not made yet.
Result<std::optional<RecordView>> look(FileSystem& files, Compute& compute, const LoadOptions& options) {
  auto loaded = load_store(files, catalog_directory, options);
  if (!loaded && !loaded.failed_with(Code::not_found)) return loaded.error();
  if (!loaded && files.stat(directory::manifests)) return other_catalog(CatalogKind::rocksdb);
  if (loaded) {
    auto records = run_kernel(compute, decode_kernel, std::uint64_t{0}, {*loaded});
    if (records) {
      RecordView view(*std::move(records));
      FD_TRY_VOID(check_schema(view));
      if (view.size() == 0) FD_TRY_VOID(check_not_lost(files));
      return std::optional(std::move(view));
    }
    if (!records.failed_with(Code::not_found)) return records.error();
  }
  FD_TRY_VOID(check_not_lost(files));
  return std::optional<RecordView>();
}

// What looks damaged is looked at once more past the caches: a stale listing, too, may have left something out.
Result<std::optional<RecordView>> read_records(FileSystem& files, Compute& compute, bool drop_caches) {
  auto records = look(files, compute, {.drop_caches = drop_caches});
  if (records || drop_caches || ends_the_call(records.error())) return records;
  return look(files, compute, {.drop_caches = true});
}

class RocksdbCatalog final : public Catalog {
 public:
  Result<Survey> survey(FileSystem& files, Compute& compute) override {
    FD_TRY(const auto records, read_records(files, compute, false));
    Survey survey;
    if (!records) return survey;
    survey.manifests = ids_under(*records, directory::manifests);
    survey.validated = ids_under(*records, directory::validated);
    survey.rejected = ids_under(*records, directory::rejected);
    survey.tombstones = ids_under(*records, directory::tombstones);
    const std::string prefix = path_in(directory::attempts, std::string_view());
    const auto [first, last] = records->with_prefix(prefix);
    for (std::size_t i = first; i < last; ++i) {
      FD_TRY_VOID(add_attempt(survey, records->name(i).substr(prefix.size()),
                              [&records, i]() -> Result<Value> { return records->value(i); }));
    }
    sort_attempts(survey);
    return survey;
  }

  Result<Value> manifest(FileSystem& files, Compute& compute, const CheckpointId& id, bool drop_caches) override {
    const std::string name = path_in(directory::manifests, id);
    auto records = read_records(files, compute, drop_caches);
    if (records) {
      if (*records) {
        if (auto text = (*records)->find(name)) return *std::move(text);
      }
      return Error{.code = Code::not_found, .message = fmt::format("the catalog holds no {}", name)};
    }
    Error error = std::move(records).error();
    if (error.code != Code::corrupted && error.code != Code::io_error) return error;
    error.code = Code::unavailable;
    return error;
  }

  Status claim(FileSystem& files, int attempt) override {
    FD_TRY(const std::vector<std::string> there, files.list(""));
    if (std::find(there.begin(), there.end(), directory::manifests) != there.end()) {
      return other_catalog(CatalogKind::rocksdb);
    }
    FD_TRY_VOID(make_directories(files, there, {catalog_directory, directory::shards}));
    const auto current = files.stat(path_in(catalog_directory, "CURRENT"));
    if (!current && !current.failed_with(Code::not_found)) return current.error();
    if (!current) FD_TRY_VOID(check_not_lost(files));
    FD_TRY(auto* store, writer(files));
    FD_TRY(Value found, store->records());
    const RecordView records(std::move(found));
    FD_TRY_VOID(check_schema(records));
    if (records.size() == 0) FD_TRY_VOID(check_not_lost(files));
    if (records.find(path_in(directory::attempts, std::to_string(attempt)))) return claimed_before(attempt);
    std::vector<RecordChange> changes = {put(directory::attempts, std::to_string(attempt))};
    if (records.size() == 0) {
      changes.push_back({.name = std::string(schema_name), .value = Value::copy_of(schema)});
    }
    return write(files, changes);
  }

  Status commit(FileSystem& files, const CheckpointId& id, const Value& manifest, bool& issued) override {
    FD_TRY_VOID(writer(files));
    issued = true;
    return write(files, {put(directory::manifests, to_string(id), manifest.text())});
  }

  // The copies beside the shards are for a day on which the catalog is lost; nobody else reads them, so they are read
  // back here. They come before the mark: once it is there nobody marks again, so a death between the two would leave
  // a validated checkpoint without copies for good. Copies without a mark do no harm: what is being marked was
  // verified.
  Status mark_validated(FileSystem& files, const CheckpointId& id) override {
    FD_TRY(auto* store, writer(files));
    FD_TRY(Value found, store->records());
    const auto manifest = RecordView(std::move(found)).find(path_in(directory::manifests, id));
    if (!manifest) {
      return Error{.code = Code::not_found, .message = fmt::format("the catalog holds no {}", to_string(id))};
    }
    const std::string beside = path_in(directory::shards, id);
    FD_TRY_VOID(write_copy(files, path_in(beside, manifest_copy), *manifest));
    FD_TRY_VOID(expect_written(files, path_in(beside, manifest_copy), *manifest));
    FD_TRY_VOID(write_copy(files, path_in(beside, validated_copy), Value::copy_of(std::string_view())));
    FD_TRY_VOID(files.sync_directory(beside));
    return write(files, {put(directory::validated, id)});
  }

  Status mark_rejected(FileSystem& files, const CheckpointId& id) override {
    return write(files, {put(directory::rejected, id)});
  }

  Status record_seen(FileSystem& files, const Survey::Seen& seen) override {
    const std::string name = std::to_string(seen.attempt) + ".seen";
    return write(files, {put(directory::attempts, name, encode_seen(seen).text())});
  }

  Status settle(FileSystem&, const CheckpointId&, const std::vector<CheckpointId>&) override { return {}; }

  Status bury(FileSystem& files, const std::vector<CheckpointId>& ids) override {
    std::vector<RecordChange> changes;
    for (const CheckpointId& id : ids) changes.push_back(put(directory::tombstones, id));
    return write(files, changes);
  }
  Status unlist(FileSystem& files, const std::vector<CheckpointId>& ids) override {
    std::vector<RecordChange> changes;
    for (const CheckpointId& id : ids) {
      changes.push_back(removal(directory::manifests, id));
      changes.push_back(removal(directory::validated, id));
    }
    return write(files, changes);
  }
  Status forget(FileSystem&, const std::vector<CheckpointId>&) override { return {}; }
  Status remove_tombstones(FileSystem& files, const std::vector<CheckpointId>& ids) override {
    std::vector<RecordChange> changes;
    for (const CheckpointId& id : ids) changes.push_back(removal(directory::tombstones, id));
    return write(files, changes);
  }

  Status sweep(FileSystem& files, int, const Goes& goes) override {
    FD_TRY(auto* store, writer(files));
    FD_TRY(Value found, store->records());
    const RecordView records(std::move(found));
    std::vector<RecordChange> changes;
    for (const std::string_view marks : {directory::validated, directory::rejected, directory::tombstones}) {
      for (const CheckpointId& id : ids_under(records, marks)) {
        if (goes(marks, id)) changes.push_back(removal(marks, id));
      }
    }
    return write(files, changes);
  }

 private:
  // An asynchronous publish has a file system of its own, by which its calls are known: the store is opened again then.
  Result<RecordStore*> writer(FileSystem& files) {
    if (!store_ || opened_through_ != &files) {
      store_.reset();
      FD_TRY(store_, RecordStore::open(files, catalog_directory));
      opened_through_ = &files;
    }
    return store_.get();
  }

  Status write(FileSystem& files, const std::vector<RecordChange>& changes) {
    if (changes.empty()) return {};
    FD_TRY(auto* store, writer(files));
    return store->write(changes);
  }

  // One that an earlier attempt left unfinished is written anew.
  static Status write_copy(FileSystem& files, const std::string& path, const Value& bytes) {
    Status written = write_synced(files, path, bytes);
    if (!written.failed_with(Code::already_exists)) return written;
    FD_TRY_VOID(files.remove(path));
    return write_synced(files, path, bytes);
  }

  std::unique_ptr<RecordStore> store_;
  FileSystem* opened_through_ = nullptr;
};

}  // namespace

std::unique_ptr<Catalog> make_rocksdb_catalog() { return std::make_unique<RocksdbCatalog>(); }

}  // namespace firedrill

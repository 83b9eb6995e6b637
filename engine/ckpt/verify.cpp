// Is this checkpoint whole? One rank's look at one candidate on its own disk.
#include <fmt/format.h>

#include <algorithm>

#include "engine/base/text.h"
#include "engine/ckpt/agree.h"
#include "engine/ckpt/protocol.h"
#include "engine/ckpt/shard.h"

namespace firedrill {
namespace {

Error damaged(std::string what) { return Error{.code = Code::corrupted, .message = std::move(what)}; }

// What is missing is found out by opening it.
Status drop_cache(FileSystem& files, const std::string& path) {
  Status dropped = files.drop_cache(path);
  if (dropped.failed_with(Code::not_found)) return {};
  return dropped;
}

struct ChangedField {
  std::string name;
  std::string there;
  std::string here;
};

// Each field in which the checkpoint's job differs.
std::vector<ChangedField> changed_fields(const ManifestView& manifest, const Job& job) {
  std::vector<ChangedField> changed;
  const std::vector<JobField> here = bit_fields(job);
  const auto there = manifest.fields();
  const auto value_there = [&](const std::string& name) -> std::optional<std::string_view> {
    for (const FieldRecord& field : there) {
      if (manifest.text(field.name) == name) return manifest.text(field.value);
    }
    return std::nullopt;
  };
  for (const JobField& field : here) {
    const auto value = value_there(field.name);
    if (value != field.value) changed.push_back({field.name, std::string(value.value_or("nothing")), field.value});
  }
  for (const FieldRecord& field : there) {
    const std::string name(manifest.text(field.name));
    const bool known = std::any_of(here.begin(), here.end(), [&](const JobField& f) { return f.name == name; });
    if (!known) changed.push_back({name, std::string(manifest.text(field.value)), "nothing"});
  }
  return changed;
}

// Says "optimizer.lr: 0.01 there, 0.003 here", and what a change of the recipe asks for.
Error of_another_job(const std::string& id, const std::vector<ChangedField>& changed) {
  std::vector<std::string> lines;
  std::vector<std::string> recipe;
  for (const ChangedField& field : changed) {
    lines.push_back(fmt::format("{}: {} there, {} here", field.name, field.there, field.here));
    const std::string group =
        field.name.starts_with("precision.scaler") ? "scaling" : field.name.substr(0, field.name.find('.'));
    const bool matters = group == "batch" || group == "optimizer" || group == "precision" || group == "scaling";
    if (matters && std::find(recipe.begin(), recipe.end(), group) == recipe.end()) recipe.push_back(group);
  }
  std::string message = fmt::format("checkpoint {} is of another job: {}", id, join(lines, "; "));
  if (!recipe.empty()) {
    message += fmt::format("; with another {} convergence must be revalidated", join(recipe, " and "));
  }
  return Error{.code = Code::mismatch,
               .message = std::move(message),
               .hint = "resume with the job that wrote it, or give this one a directory of its own"};
}

Status check_owner(const ManifestView& manifest, const ExpectedRun& expectation) {
  const ManifestHead& head = manifest.head();
  const RunIdentity& identity = expectation.identity;
  if (head.job != identity.job_digest) {
    return of_another_job(to_string(manifest.id()), changed_fields(manifest, expectation.job));
  }
  if (head.corpus != identity.corpus_digest) {
    return Error{.code = Code::mismatch,
                 .message = fmt::format("checkpoint {} was trained on corpus {}, the corpus here is {}",
                                        to_string(manifest.id()), head.corpus.hex(), identity.corpus_digest.hex()),
                 .hint = "the text has changed: bring the old one back, or begin in a new directory"};
  }
  if (manifest.text(head.run) != identity.run_id) {
    const std::string_view run = manifest.text(head.run);
    return Error{.code = Code::mismatch,
                 .message = fmt::format("checkpoint {} is of run {}, this is run {}", to_string(manifest.id()), run,
                                        identity.run_id),
                 .hint = "give each run a directory of its own"};
  }
  return {};
}

Status check_header(const ManifestView& manifest, const ShardRecord& record, std::string_view front,
                    const std::string& path) {
  // The manifest is of a format that is known, so a shard of a newer one does not belong to it.
  auto header = parse_shard_header(front);
  if (!header) return damaged(fmt::format("{}: {}", path, header.error().message));
  const ManifestHead& head = manifest.head();
  if (header->id != manifest.id() || header->job != head.job || header->run_id != manifest.text(head.run) ||
      header->rank != record.rank || static_cast<std::int32_t>(header->kind) != record.kind ||
      header->world != head.world) {
    return damaged(fmt::format("{} is {} of rank {} of {} in checkpoint {} of run {}", path, to_string(header->kind),
                               header->rank, header->world, to_string(header->id), header->run_id));
  }
  if (header->size + header->payload != record.size) {
    return damaged(
        fmt::format("{} holds {} bytes behind its header, not {}", path, record.size - header->size, header->payload));
  }
  return {};
}

ExpectedHeader expected_header(const ManifestView& manifest) {
  const ManifestHead& head = manifest.head();
  return ExpectedHeader({.id = manifest.id(),
                         .world = static_cast<int>(head.world),
                         .job = head.job,
                         .run_id = std::string(manifest.text(head.run))});
}

Status check_shard_file(FileSystem& files, const ManifestView& manifest, ExpectedHeader& expected,
                        const ShardRecord& record, const std::string& path, bool whole) {
  auto file = files.open(path);
  if (file.failed_with(Code::not_found)) {
    Error missing = damaged(fmt::format("{} is missing", path));
    missing.retryable = true;  // it may only be late
    return missing;
  }
  if (!file) return file.error();
  FD_TRY(const std::int64_t size, (*file)->size());
  if (size != record.size) return damaged(fmt::format("{} has {} bytes, not {}", path, size, record.size));
  const std::int64_t wanted = whole ? size : std::min(size, shard_header_size_max);
  FD_TRY(const Value bytes, (*file)->read(0, wanted));
  if (static_cast<std::int64_t>(bytes.size()) != wanted) {
    return damaged(fmt::format("{}: {} of {} bytes read", path, bytes.size(), wanted));
  }
  const auto front = bytes.text().substr(0, static_cast<std::size_t>(shard_header_size_max));
  if (!expected.matches(front, record.rank, static_cast<ShardKind>(record.kind), record.size)) {
    FD_TRY_VOID(check_header(manifest, record, front, path));
  }
  if (whole && bytes.digest() != record.digest) {
    return damaged(fmt::format("{} has digest {}, not {}", path, bytes.digest().hex(), record.digest.hex()));
  }
  return {};
}

}  // namespace

Result<ManifestView> Protocol::verify(FileSystem& files, Compute& compute, const ExpectedRun& expectation,
                                      const CheckpointId& id, const Scope& scope) {
  FD_TRY(const Value text, catalog_for(expectation.job, compute).manifest(files, compute, id, scope.drop_caches));
  auto parsed = parse_manifest(compute, text);
  if (!parsed) {
    Error error = std::move(parsed).error();
    error.message = fmt::format("{}: {}", path_in(directory::manifests, id), error.message);
    return error;
  }
  const ManifestView& manifest = *parsed;
  const std::string directory = shard_directory(id);
  if (manifest.id() != id || manifest.text(manifest.head().directory) != directory) {
    return damaged(fmt::format("{} is the manifest of {} in {}", path_in(directory::manifests, id),
                               to_string(manifest.id()), manifest.text(manifest.head().directory)));
  }
  FD_TRY_VOID(check_owner(manifest, expectation));
  ExpectedHeader expected = expected_header(manifest);
  std::string shard = path_in(directory, "");
  for (const ShardRecord& record : manifest.shards()) {
    shard.resize(directory.size() + 1);
    shard += manifest.text(record.name);
    if (scope.drop_caches) FD_TRY_VOID(drop_cache(files, shard));
    const bool whole = record.rank % scope.shares == scope.share;
    FD_TRY_VOID(check_shard_file(files, manifest, expected, record, shard, whole));
  }
  return manifest;
}

Result<ManifestView> Protocol::verify_once(FileSystem& files, Compute& compute, const ExpectedRun& expectation,
                                           const CheckpointId& id, WholeCandidates* whole) {
  const std::optional<Digest> mark = whole != nullptr ? whole->mark(id) : std::nullopt;
  if (!mark) return verify(files, compute, expectation, id, Scope{});
  if (const auto known = whole->known.find(*mark); known != whole->known.end()) return known->second;
  FD_TRY(ManifestView manifest, verify(files, compute, expectation, id, Scope{}));
  if (whole->known.size() >= WholeCandidates::known_max) whole->known.clear();
  whole->known.emplace(*mark, manifest);
  return manifest;
}

Discovery Protocol::discover(FileSystem& files, Compute& compute, const ExpectedRun& expectation,
                             WholeCandidates* whole) {
  Discovery discovery;
  catalog_for(expectation.job, compute);
  const auto listed = survey(files);
  if (!listed) {
    discovery.trouble = listed.error();
    return discovery;
  }
  for (const CheckpointId& id : candidates(*listed)) {
    auto manifest = verify_once(files, compute, expectation, id, whole);
    if (manifest) {
      discovery.chosen = id;
      discovery.manifest = *manifest;
      return discovery;
    }
    if (!is_damage(manifest.error())) {
      discovery.trouble = manifest.error();
      return discovery;
    }
    discovery.damaged.push_back({.id = id, .what = manifest.error().message});
  }
  if (!discovery.damaged.empty()) {
    discovery.trouble = damaged(fmt::format("all {} checkpoints listed are damaged; the newest: {}",
                                            discovery.damaged.size(), discovery.damaged.front().what));
  }
  return discovery;
}

}  // namespace firedrill

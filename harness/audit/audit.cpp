#include "harness/audit/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/base/text.h"
#include "harness/audit/contents.h"
#include "harness/audit/records.h"

namespace firedrill {
namespace {

using auditing::Accepted;
using auditing::Manifest;
using auditing::Records;
using auditing::Shard;
using auditing::ShardFile;

constexpr std::size_t decoded_max = 8192;  // checkpoints remembered; then all are forgotten
constexpr std::size_t listed_about = 8;    // checkpoints that a root has room for before its list grows
constexpr std::int64_t accepted_size_max = std::int64_t{1} << 24;

// One look at a root: what is listed, before anything is decoded.
class Listing {
 public:
  Listing(FileSystem& files, const Records& records, AuditReport& report)
      : files_(files), records_(records), report_(report) {}

  void read() {
    report_.checkpoints.reserve(listed_about);
    for (const CheckpointId& id : ids("manifests", true)) at(id).committed = true;
    for (const CheckpointId& id : ids("validated", true)) at(id).validated = true;
    for (const CheckpointId& id : ids("rejected", true)) at(id).rejected = true;
    for (const CheckpointId& id : ids("tombstones", true)) at(id).tombstone = true;
    for (const CheckpointId& id : ids("shards", false)) at(id).has_shards = true;
    read_attempts();
    std::sort(report_.checkpoints.begin(), report_.checkpoints.end(),
              [](const AuditedCheckpoint& a, const AuditedCheckpoint& b) { return a.id < b.id; });
    for (AuditedCheckpoint& checkpoint : report_.checkpoints) {
      checkpoint.visible = checkpoint.committed && is_visible(checkpoint.id);
    }
  }

 private:
  AuditedCheckpoint& at(const CheckpointId& id) {
    for (AuditedCheckpoint& checkpoint : report_.checkpoints) {
      if (checkpoint.id == id) return checkpoint;
    }
    return report_.checkpoints.emplace_back(AuditedCheckpoint{.id = id});
  }

  std::vector<std::string> names(const std::string& directory) {
    auto listed = directory == "shards" ? files_.list(directory) : records_.names(directory);
    if (listed) return *std::move(listed);
    if (!listed.failed_with(Code::not_found)) {
      report_.problems.push_back(fmt::format("{} cannot be listed: {}", directory, listed.error().message));
      report_.record_damaged = true;
    }
    return {};
  }

  std::vector<CheckpointId> ids(const std::string& directory, bool nothing_else) {
    std::vector<CheckpointId> found;
    const std::vector<std::string> listed = names(directory);
    found.reserve(listed.size());
    for (const std::string& name : listed) {
      if (const auto id = checkpoint_id_from(name)) {
        found.push_back(*id);
      } else if (nothing_else) {
        report_.problems.push_back(fmt::format("{}/{} does not belong there", directory, name));
      }
    }
    return found;
  }

  void read_attempts() {
    constexpr std::string_view ending = ".seen";
    for (const std::string& name : names("attempts")) {
      if (const auto number = parse_whole(name); number && *number <= INT32_MAX) {
        report_.attempts.push_back(static_cast<std::int64_t>(*number));
        continue;
      }
      const std::string path = "attempts/" + name;
      if (!name.ends_with(ending)) {
        report_.problems.push_back(path + " does not belong there");
        continue;
      }
      const auto text = records_.text(path, accepted_size_max);
      auto accepted = text ? auditing::decode_accepted(text->text()) : Result<Accepted>(text.error());
      if (accepted && std::to_string(accepted->attempt).append(ending) != name) {
        accepted = Error{.code = Code::corrupted, .message = fmt::format("is of attempt {}", accepted->attempt)};
      }
      if (accepted) {
        accepted_.push_back(*std::move(accepted));
      } else {
        report_.problems.push_back(fmt::format("{}: {}", path, accepted.error().message));
        report_.record_damaged = true;
      }
    }
    std::sort(report_.attempts.begin(), report_.attempts.end());
  }

  bool is_visible(const CheckpointId& id) const {
    return std::all_of(accepted_.begin(), accepted_.end(), [&](const Accepted& accepted) {
      return accepted.attempt <= id.attempt ||
             std::find(accepted.ids.begin(), accepted.ids.end(), id) != accepted.ids.end();
    });
  }

  FileSystem& files_;
  const Records& records_;
  AuditReport& report_;
  std::vector<Accepted> accepted_;
};

void note_unreadable(const Error& error, AuditReport& report) {
  report.record_damaged = true;
  const bool mixed = error.code == Code::mismatch;
  report.unknown_because = mixed ? "there are records of both kinds" : "the catalog cannot be read";
  report.problems.push_back(mixed ? error.message : "the catalog cannot be read: " + error.message);
  if (error.code == Code::corrupted) {
    report.problems.back() += "; if it cannot be brought back, rebuild it: firedrill audit DIR --rebuild-catalog";
  }
}

}  // namespace

std::vector<NamedDigest> CheckpointContents::named_digests() const {
  std::vector<NamedDigest> list;
  list.reserve(tensors.size());
  for (const AuditedTensor& tensor : tensors) list.push_back({tensor.name, tensor.digest});
  return list;
}

const AuditedCheckpoint* AuditReport::find(const CheckpointId& id) const {
  for (const AuditedCheckpoint& checkpoint : checkpoints) {
    if (checkpoint.id == id) return &checkpoint;
  }
  return nullptr;
}

const AuditedCheckpoint* AuditReport::newest() const {
  const auto found = std::find_if(checkpoints.rbegin(), checkpoints.rend(),
                                  [](const AuditedCheckpoint& checkpoint) { return checkpoint.stands(); });
  return found == checkpoints.rend() ? nullptr : &*found;
}

bool AuditReport::lost(const AuditedCheckpoint& checkpoint) const {
  if (!checkpoint.validated || checkpoint.committed || checkpoint.tombstone || checkpoint.rejected) return false;
  const AuditedCheckpoint* kept = newest();
  return kept == nullptr || kept->id < checkpoint.id;
}

bool AuditReport::damaged() const {
  return record_damaged ||
         std::any_of(checkpoints.begin(), checkpoints.end(), [this](const AuditedCheckpoint& checkpoint) {
           return (checkpoint.stands() && !checkpoint.intact()) || checkpoint.lost_by_catalog || lost(checkpoint);
         });
}

std::shared_ptr<const CheckpointContents> Auditor::decode(FileSystem& files, const CheckpointId& id,
                                                          const Result<Value>& text) {
  if (!text) return auditing::no_contents("its manifest cannot be read: " + text.error().message);
  const Digest manifest_digest = text->digest();
  auto& manifest = manifests_[manifest_digest];
  if (!manifest) {
    auto decoded = auditing::decode_manifest(text->text());
    if (!decoded) return auditing::no_contents("its manifest: " + decoded.error().message);
    manifest = std::make_shared<const Manifest>(*std::move(decoded));
  }
  const std::size_t slash = manifest->directory.find('/');
  if (slash == std::string::npos || manifest->directory.substr(0, slash) != "shards" ||
      !auditing::is_plain_name(std::string_view(manifest->directory).substr(slash + 1))) {
    return auditing::no_contents(fmt::format("its manifest: \"{}\" cannot be where shards lie", manifest->directory));
  }
  std::vector<ShardFile> shards;
  shards.reserve(manifest->shards.size());
  std::vector<std::uint64_t> key = {manifest_digest.high, manifest_digest.low, static_cast<std::uint64_t>(id.step),
                                    static_cast<std::uint64_t>(id.attempt), static_cast<std::uint64_t>(id.trial)};
  std::int64_t held = 0;
  bool readable = true;
  for (const Shard& shard : manifest->shards) {
    ShardFile& file =
        shards.emplace_back(auditing::open_shard(files, manifest->directory + '/' + shard.name, shard.size, held));
    readable = readable && file.problem.empty();
    key.insert(key.end(), {static_cast<std::uint64_t>(file.size), file.digest.high, file.digest.low});
  }
  if (!readable) return auditing::decode_contents(id, *manifest, shards);
  auto& contents = contents_[digest_of(std::span<const std::uint64_t>(key))];
  if (!contents) contents = auditing::decode_contents(id, *manifest, shards);
  return contents;
}

std::shared_ptr<const CheckpointContents> Auditor::decode_marked(FileSystem& files, const CheckpointId& id,
                                                                 const Records& records, const ContentMark& mark) {
  const std::optional<Digest> marked = mark ? mark(id) : std::nullopt;
  if (marked) {
    if (const auto known = marked_.find(*marked); known != marked_.end()) return known->second;
  }
  const std::string name = to_string(id);
  const Result<Value> text = records.text("manifests/" + name, auditing::manifest_size_max);
  std::shared_ptr<const CheckpointContents> contents = decode(files, id, text);
  if (!marked || !text) return contents;
  const auto manifest = manifests_.find(text->digest());
  if (manifest != manifests_.end() && manifest->second && manifest->second->directory == "shards/" + name) {
    marked_[*marked] = contents;
  }
  return contents;
}

AuditReport Auditor::audit(FileSystem& files, const ContentMark& mark) {
  if (contents_.size() > decoded_max || manifests_.size() > decoded_max || catalogs_.size() > decoded_max ||
      marked_.size() > decoded_max) {
    contents_.clear();
    marked_.clear();
    manifests_.clear();
    catalogs_.clear();
  }
  AuditReport report;
  auto records = Records::of(files, catalogs_);
  if (!records) {
    note_unreadable(records.error(), report);
    records = Records::none(files);
  }
  Listing(files, *records, report).read();
  for (AuditedCheckpoint& checkpoint : report.checkpoints) {
    if (checkpoint.committed) {
      checkpoint.contents = decode_marked(files, checkpoint.id, *records, mark);
    } else if (!report.unknown_because.empty()) {
      checkpoint.contents = auditing::no_contents("unknown: " + report.unknown_because);
    } else if (checkpoint.retired()) {
      checkpoint.contents = std::make_shared<const CheckpointContents>();
    } else if (records->has_catalog() && is_lost(files, checkpoint)) {
      checkpoint.lost_by_catalog = true;
      checkpoint.contents =
          auditing::no_contents("the catalog has lost it: rebuild with firedrill audit DIR --rebuild-catalog");
    } else {
      checkpoint.contents = auditing::no_contents("it has no manifest");
    }
  }
  return report;
}

bool Auditor::is_lost(FileSystem& files, const AuditedCheckpoint& checkpoint) {
  if (!checkpoint.has_shards || checkpoint.validated || checkpoint.rejected || checkpoint.tombstone) return false;
  return files.stat(fmt::format("shards/{}/validated", to_string(checkpoint.id))) &&
         decode_copy(files, checkpoint.id)->intact;
}

std::shared_ptr<const CheckpointContents> Auditor::decode_copy(FileSystem& files, const CheckpointId& id) {
  return decode(
      files, id,
      auditing::read_file(files, fmt::format("shards/{}/manifest", to_string(id)), auditing::manifest_size_max));
}

AuditReport audit_directory(FileSystem& files) { return Auditor().audit(files); }

}  // namespace firedrill

// Building the manifest's text, and the part of it that every checkpoint of a run has in common.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/ckpt/context.h"
#include "engine/ckpt/manifest.h"
#include "engine/ckpt/shard.h"
#include "engine/job/without_checks.h"

namespace firedrill {
namespace {

using Ordered = nlohmann::ordered_json;

Error disagreement(std::string what) { return Error{.code = Code::mismatch, .message = std::move(what)}; }

// The tensors of all ranks, by name, in the order in which they first appear.
class TensorTable {
 public:
  Result<std::size_t> index_of(const ReportedPiece& piece) {
    const auto [at, added] = indices_.try_emplace(std::string(piece.tensor), tensors_.size());
    const auto sizes = piece.shape.sizes();
    // On the marked line of this expression gcov counts only its unwinding.
    Ordered entry = {{"name", piece.tensor},
                     {"dtype", to_string(piece.dtype)},  // GCOV_EXCL_LINE
                     {"shape", std::vector<std::int64_t>(sizes.begin(), sizes.end())}};
    if (added) {
      tensors_.push_back(std::move(entry));
    } else if (tensors_[at->second] != entry) {
      return disagreement(
          fmt::format("ranks disagree on {}: {} and {}", piece.tensor, tensors_[at->second].dump(), entry.dump()));
    }
    return at->second;
  }
  Ordered take() { return std::move(tensors_); }

 private:
  std::map<std::string, std::size_t> indices_;
  Ordered tensors_ = Ordered::array();
};

Status add_rank(const Value& report, int rank, const ManifestScalars& scalars, int world, const std::string& job,
                TensorTable& tensors, Ordered& shards) {
  FD_TRY(const ReportHead head, report_head(report));
  const EncodeScalars& said = head.scalars;
  if (said.step != scalars.step || said.attempt != scalars.attempt || said.trial != scalars.trial ||
      said.rank != rank || said.world != world) {
    return disagreement(fmt::format(
        "rank {} reports shards of rank {} of {} of {}-{}-{}, not of rank {} of {} of {}-{}-{}", rank, said.rank,
        said.world, said.step, said.attempt, said.trial, rank, world, scalars.step, scalars.attempt, scalars.trial));
  }
  if (said.job.hex() != job) {
    return disagreement(fmt::format("rank {} saves for job {}, the coordinator for job {}", rank, said.job.hex(), job));
  }
  FD_TRY(const auto pieces, reported_pieces(report));
  for (std::size_t kind = 0; kind < shard_kind_count; ++kind) {
    Ordered list = Ordered::array();
    for (const ReportedPiece& piece : pieces[kind]) {
      FD_TRY(const std::size_t tensor, tensors.index_of(piece));
      list.push_back(Ordered::array({tensor, piece.begin, piece.end, piece.offset, piece.digest.hex()}));
    }
    // On the marked line of this expression gcov counts only its unwinding.
    shards.push_back({{"name", shard_name(static_cast<ShardKind>(kind), rank)},
                      {"rank", rank},
                      {"node", rank / scalars.ranks_per_node},  // GCOV_EXCL_LINE
                      {"size", head.sizes[kind]},
                      {"digest", head.digests[kind].hex()},
                      {"pieces", std::move(list)}});
  }
  return {};
}

Result<Value> run_build(std::span<const std::byte> bytes, std::span<Value> inputs) {
  const auto scalars = scalars_as<ManifestScalars>(bytes);
  const Ordered identity = Ordered::parse(inputs[0].text(), nullptr, false);
  FD_CHECK(identity.is_object(), "an identity that make_run_identity did not make");
  const auto reports = inputs[2].parts();
  const int world = static_cast<int>(reports.size());
  const std::string job = identity.at("job");
  TensorTable tensors;
  Ordered shards = Ordered::array();
  for (int rank = 0; rank < world; ++rank) {
    FD_TRY_VOID(add_rank(reports[static_cast<std::size_t>(rank)], rank, scalars, world, job, tensors, shards));
  }
  Ordered body;
  body["schema"] = "firedrill.manifest/1";
  body["format"] = format_version;
  body["software"] = software_version;
  body["provenance"] = {{"run", identity.at("run")},
                        {"job", identity.at("job")},
                        {"step", scalars.step},
                        {"attempt", scalars.attempt},
                        {"try", scalars.trial}};
  for (const char* key : {"layout", "lanes", "corpus", "numerics", "fields"}) body[key] = identity.at(key);
  body["world"] = world;
  body["state"] = scalars.state.hex();
  body["directory"] = inputs[1].text();
  body["tensors"] = tensors.take();
  body["shards"] = std::move(shards);
  std::string text = body.dump();
  text.back() = ',';
  const Digest digest = digest_of(text);
  text += fmt::format("\"digest\":\"{}\"}}\n", digest.hex());
  return Value::copy_of(text);
}

constexpr Kernel build_kernel = make_kernel("ckpt.build_manifest", KernelKind::codec, run_build);

}  // namespace

RunIdentity make_run_identity(const Job& job, const Layout& layout, std::string_view run_id,
                              const Digest& corpus_digest, std::string_view numerics_key) {
  FD_CHECK(is_safe_name(run_id) && run_id.size() <= run_id_size_max, "`{}` cannot be a run id", run_id);
  RunIdentity identity{.run_id = std::string(run_id),
                       .job_digest = digest_of_job(job),
                       .corpus_digest = corpus_digest,
                       .numerics_key = std::string(numerics_key),
                       .layout = to_string(without_checks(layout)),  // which have no part in what is saved
                       .run = Value::copy_of(run_id)};
  Ordered fields = Ordered::array();
  for (const JobField& field : bit_fields(job)) fields.push_back(Ordered::array({field.name, field.value}));
  const Ordered body = {
      {"run", identity.run_id},        {"job", identity.job_digest.hex()},
      {"layout", identity.layout},     {"lanes", {{"dp", job.lanes.dp}, {"tp", job.lanes.tp}, {"cp", job.lanes.cp}}},
      {"corpus", corpus_digest.hex()}, {"numerics", identity.numerics_key},
      {"fields", std::move(fields)}};
  identity.encoded = Value::copy_of(body.dump());
  return identity;
}

Result<Value> build_manifest(Compute& compute, const ManifestScalars& scalars, const Value& identity,
                             const Value& directory, const Value& reports) {
  FD_TRY(Value text, run_kernel(compute, build_kernel, scalars, {identity, directory, reports}));
  // What cannot be read back must not be committed: this checks that every tensor is covered exactly once, too.
  FD_TRY_VOID(parse_manifest(compute, text));
  return text;
}

}  // namespace firedrill

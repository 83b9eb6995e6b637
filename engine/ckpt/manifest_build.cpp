// Building the manifest's text, and the part of it that every checkpoint of a run has in common.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/ckpt/context.h"
#include "engine/ckpt/manifest.h"
#include "engine/ckpt/shard.h"
#include "engine/job/without_checks.h"

namespace firedrill {
namespace {

using Ordered = nlohmann::ordered_json;

Error disagreement(std::string what) { return Error{.code = Code::mismatch, .message = std::move(what)}; }

// As JSON writes it. Names and directories hardly ever need more than the quotes.
std::string json_text(std::string_view text) {
  const auto plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  if (!std::ranges::all_of(text, plain)) return Ordered(text).dump();
  std::string quoted = "\"";
  quoted.append(text).push_back('"');
  return quoted;
}

void append(std::string& text, std::int64_t number) {
  std::array<char, 20> digits;
  text.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
}

std::string entry_of(std::string_view name, DType dtype, const Shape& shape) {
  std::string text = "{\"name\":" + json_text(name);
  text.append(",\"dtype\":\"").append(to_string(dtype)).append("\",\"shape\":[");
  for (const std::int64_t size : shape.sizes()) {
    if (text.back() != '[') text.push_back(',');
    append(text, size);
  }
  return text += "]}";
}

// The tensors of all ranks, by name, in the order in which they first appear.
class TensorTable {
 public:
  Result<std::size_t> index_of(const ReportedPiece& piece) {
    const auto known = entries_.find(piece.tensor);
    if (known == entries_.end()) {
      const std::size_t index = entries_.size();
      entries_.emplace(piece.tensor, Entry{.index = index, .dtype = piece.dtype, .shape = piece.shape});
      if (index > 0) text_.push_back(',');
      text_ += entry_of(piece.tensor, piece.dtype, piece.shape);
      return index;
    }
    const Entry& entry = known->second;
    if (entry.dtype != piece.dtype || entry.shape != piece.shape) {
      return disagreement(fmt::format("ranks disagree on {}: {} and {}", piece.tensor,
                                      entry_of(piece.tensor, entry.dtype, entry.shape),
                                      entry_of(piece.tensor, piece.dtype, piece.shape)));
    }
    return entry.index;
  }
  // The elements of a JSON list.
  const std::string& text() const { return text_; }

 private:
  struct Entry {
    std::size_t index = 0;
    DType dtype = DType::f32;
    Shape shape;
  };
  std::map<std::string_view, Entry> entries_;  // the names lie in the reports
  std::string text_;
};

Status add_rank(const Value& report, int rank, const ManifestScalars& scalars, int world, std::string_view job,
                TensorTable& tensors, std::string& shards) {
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
    if (!shards.empty()) shards.push_back(',');
    shards.append("{\"name\":").append(json_text(shard_name(static_cast<ShardKind>(kind), rank)));
    append(shards.append(",\"rank\":"), rank);
    append(shards.append(",\"node\":"), rank / scalars.ranks_per_node);
    append(shards.append(",\"size\":"), head.sizes[kind]);
    shards.append(",\"digest\":\"").append(head.digests[kind].hex()).append("\",\"pieces\":[");
    for (const ReportedPiece& piece : pieces[kind]) {
      FD_TRY(const std::size_t tensor, tensors.index_of(piece));
      shards.append(shards.back() == '[' ? "[" : ",[");
      for (const std::int64_t number : {static_cast<std::int64_t>(tensor), piece.begin, piece.end, piece.offset}) {
        append(shards, number);
        shards.push_back(',');
      }
      shards.append("\"").append(piece.digest.hex()).append("\"]");
    }
    shards += "]}";
  }
  return {};
}

// What make_run_identity wrote: `{"run":...,"job":"...","layout":...}`.
struct IdentityText {
  std::string_view owner;  // "run" and "job", as members of an object
  std::string_view job;    // the digits
  std::string_view rest;   // the other members, behind a comma

  explicit IdentityText(std::string_view text) {
    constexpr std::string_view opening = R"({"run":)";
    constexpr std::string_view before_job = R"(,"job":")";
    constexpr std::size_t digits = 32;
    const std::size_t end = text.find(R"(,"layout":)");  // a run id holds no quotes
    FD_CHECK(text.starts_with(opening) && text.ends_with('}') && end != std::string_view::npos &&
                 end > digits + before_job.size() && text.substr(0, end - 1 - digits).ends_with(before_job),
             "an identity that make_run_identity did not make");
    owner = text.substr(1, end - 1);
    job = text.substr(end - 1 - digits, digits);
    rest = text.substr(end, text.size() - 1 - end);
  }
};

Result<Value> run_build(std::span<const std::byte> bytes, std::span<Value> inputs) {
  const auto scalars = scalars_as<ManifestScalars>(bytes);
  const IdentityText identity(inputs[0].text());
  const auto reports = inputs[2].parts();
  const int world = static_cast<int>(reports.size());
  TensorTable tensors;
  std::string shards;
  for (int rank = 0; rank < world; ++rank) {
    FD_TRY_VOID(add_rank(reports[static_cast<std::size_t>(rank)], rank, scalars, world, identity.job, tensors, shards));
  }
  std::string text =
      fmt::format(R"({{"schema":"firedrill.manifest/1","format":{},"software":"{}",)"
                  R"("provenance":{{{},"step":{},"attempt":{},"try":{}}}{},"world":{},"state":"{}","directory":{})",
                  format_version, software_version, identity.owner, scalars.step, scalars.attempt, scalars.trial,
                  identity.rest, world, scalars.state.hex(), json_text(inputs[1].text()));
  text.append(",\"tensors\":[").append(tensors.text()).append("],\"shards\":[").append(shards).append("],");
  const Digest digest = digest_of(text);
  text.append("\"digest\":\"").append(digest.hex()).append("\"}\n");
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

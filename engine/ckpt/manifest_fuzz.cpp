// Fuzz target: any bytes as a manifest. Either an error, or a view in which every record and text lies within bounds
// and every name stays in its directory. The first byte says whether the digest is made good.
#include "engine/base/check.h"
#include "engine/ckpt/fuzz_input.h"
#include "engine/ckpt/manifest.h"

namespace firedrill {
namespace {

void walk(const ManifestView& manifest) {
  std::size_t sum = 0;
  const auto read = [&](TextRef ref) { sum += digest_of(manifest.text(ref)).low; };
  const ManifestHead& head = manifest.head();
  for (const TextRef& ref : {head.run, head.numerics, head.layout, head.directory, head.software}) read(ref);
  for (const ShardRecord& shard : manifest.shards()) {
    read(shard.name);
    FD_CHECK(is_safe_name(manifest.text(shard.name)), "a shard's name leads out of its directory");
    FD_CHECK(shard.pieces_begin <= shard.pieces_end &&
                 shard.pieces_end <= static_cast<std::int64_t>(manifest.pieces().size()),
             "a shard's pieces are out of bounds");
  }
  for (const TensorRecord& tensor : manifest.tensors()) read(tensor.name);
  for (const PieceRecord& piece : manifest.pieces()) {
    FD_CHECK(piece.tensor >= 0 && piece.tensor < static_cast<std::int64_t>(manifest.tensors().size()),
             "a piece is of no tensor");
    const TensorRecord& tensor = manifest.tensors()[static_cast<std::size_t>(piece.tensor)];
    FD_CHECK(piece.begin >= 0 && piece.begin <= piece.end && piece.end <= tensor.count,
             "a piece leads out of its tensor");
  }
  for (const FieldRecord& field : manifest.fields()) {
    read(field.name);
    read(field.value);
  }
  volatile std::size_t kept = sum;
  static_cast<void>(kept);
}

void run(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const bool repaired = (input.byte() & 1) != 0;
  const std::string text = repaired ? fuzz::with_manifest_digest(input.rest()) : std::string(input.rest());
  DirectCompute compute;
  if (const auto manifest = parse_manifest(compute, Value::copy_of(std::string_view(text)))) walk(*manifest);
}

}  // namespace
}  // namespace firedrill

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  firedrill::run(data, size);
  return 0;
}

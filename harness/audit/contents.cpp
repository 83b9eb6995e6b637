#include "harness/audit/contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>

namespace firedrill::auditing {
namespace {

using Take = std::function<void(std::span<const std::byte>)>;

// Gives the bytes [offset, offset + size) of a file to `take`, part by part.
Status read_parts(File& file, std::int64_t offset, std::int64_t size, const Take& take) {
  while (size > 0) {
    const std::int64_t wanted = std::min(size, chunk_size);
    FD_TRY(const Value part, file.read(offset, wanted));
    if (static_cast<std::int64_t>(part.size()) != wanted) {
      return Error{.code = Code::corrupted,
                   .message = fmt::format("{} bytes at {} read, not {}", part.size(), offset, wanted)};
    }
    take(part.bytes());
    offset += wanted;
    size -= wanted;
  }
  return {};
}

Status read_parts(const ShardFile& shard, std::int64_t offset, std::int64_t size, const Take& take) {
  if (offset < 0 || size < 0 || offset > shard.size || size > shard.size - offset) {
    return Error{.code = Code::corrupted,
                 .message = fmt::format("bytes {} to {} are not there", offset, offset + size)};
  }
  if (!shard.whole) return read_parts(*shard.file, offset, size, take);
  take(shard.whole.bytes().subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size)));
  return {};
}

// Fills a CheckpointContents, collecting every problem.
class Decoding {
 public:
  Decoding(const CheckpointId& id, const Manifest& manifest, const std::vector<ShardFile>& files)
      : id_(id), manifest_(manifest), files_(files) {}

  std::shared_ptr<const CheckpointContents> run() {
    contents_.provenance = manifest_.provenance;
    contents_.layout = manifest_.layout;
    contents_.software = manifest_.software;
    contents_.numerics = manifest_.numerics;
    contents_.corpus = manifest_.corpus;
    contents_.world = manifest_.world;
    contents_.shards = std::ssize(manifest_.shards);
    contents_.provenance_coherent = true;
    if (manifest_.provenance.id != id_) {
      stranger(fmt::format("the manifest is of checkpoint {}", to_string(manifest_.provenance.id)));
    }
    for (std::size_t i = 0; i < files_.size(); ++i) check_shard(manifest_.shards[i], files_[i]);
    list_tensors();
    contents_.intact = contents_.problems.empty();
    if (contents_.intact) digest_tensors();
    contents_.intact = contents_.problems.empty();
    if (contents_.intact) contents_.state = digest_of_list();
    return std::make_shared<const CheckpointContents>(std::move(contents_));
  }

 private:
  void problem(std::string what) { contents_.problems.push_back(std::move(what)); }
  // A part that belongs to something else.
  void stranger(std::string what) {
    contents_.provenance_coherent = false;
    problem(std::move(what));
  }

  void check_shard(const Shard& shard, const ShardFile& file) {
    if (!file.problem.empty()) return problem(fmt::format("{}: {}", shard.name, file.problem));
    contents_.bytes += file.size;
    if (file.size != shard.size) {
      problem(fmt::format("{}: {} bytes, not {}", shard.name, file.size, shard.size));
    } else if (file.digest != shard.digest) {
      problem(fmt::format("{}: digest {}, not {}", shard.name, file.digest.hex(), shard.digest.hex()));
    }
    std::string front_bytes;
    const Status read = read_parts(file, 0, std::min(file.size, shard_front_max), [&](auto bytes) {
      front_bytes.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    });
    if (!read) return problem(fmt::format("{}: {}", shard.name, read.error().message));
    const auto front = decode_shard_front(front_bytes);
    if (!front) return problem(fmt::format("{}: {}", shard.name, front.error().message));
    check_front(shard, *front);
  }

  void check_front(const Shard& shard, const ShardFront& front) {
    const Provenance& other = front.provenance;
    if (other != manifest_.provenance) {
      stranger(fmt::format("{}: is of run {}, job {}, checkpoint {}", shard.name, other.run, other.job.hex(),
                           to_string(other.id)));
    }
    const std::string name = shard_file_name(front.kind, front.rank);
    if (name != shard.name || front.rank != shard.rank || front.world != manifest_.world) {
      stranger(fmt::format("{}: says it is {} of {} ranks", shard.name, name, front.world));
    }
    if (front.payload < 0 || front.payload != shard.size - front.size) {
      problem(fmt::format("{}: {} bytes behind its front, not {}", shard.name, shard.size - front.size, front.payload));
    }
    check_payload(shard, front.size);
  }

  // The pieces fill the payload, one after another.
  void check_payload(const Shard& shard, std::int64_t begin) {
    for (const Piece& piece : shard.pieces) {
      if (piece.offset != begin) return problem(fmt::format("{}: no piece begins at byte {}", shard.name, begin));
      begin += (piece.end - piece.begin) * manifest_.tensors[piece.tensor].width;
    }
    if (begin != shard.size) problem(fmt::format("{}: no piece begins at byte {}", shard.name, begin));
  }

  void list_tensors() {
    contents_.tensors.resize(manifest_.tensors.size());
    std::vector<std::size_t> next(manifest_.tensors.size() + 1);  // where the next place of each tensor goes
    for (std::size_t i = 0; i < manifest_.tensors.size(); ++i) {
      const Tensor& tensor = manifest_.tensors[i];
      contents_.tensors[i] = {.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape};
    }
    for (const Shard& shard : manifest_.shards) {
      for (const Piece& piece : shard.pieces) ++next[piece.tensor + 1];
    }
    std::partial_sum(next.begin(), next.end(), next.begin());
    places_.resize(next.back());
    begins_ = next;
    for (std::size_t s = 0; s < manifest_.shards.size(); ++s) {
      for (const Piece& piece : manifest_.shards[s].pieces) places_[next[piece.tensor]++] = {&piece, s};
    }
    for (std::size_t i = 0; i < contents_.tensors.size(); ++i) {
      const std::span<Place> places(places_.data() + begins_[i], begins_[i + 1] - begins_[i]);
      std::sort(places.begin(), places.end(),
                [](const Place& a, const Place& b) { return a.piece->begin < b.piece->begin; });
      contents_.tensors[i].pieces.reserve(places.size());
      for (const Place& place : places) {
        contents_.tensors[i].pieces.push_back({.begin = place.piece->begin,
                                               .end = place.piece->end,
                                               .digest = place.piece->digest,
                                               .shard = manifest_.shards[place.shard].name});
      }
    }
  }

  void digest_tensors() {
    DigestStream whole;
    for (std::size_t i = 0; i < contents_.tensors.size(); ++i) {
      AuditedTensor& tensor = contents_.tensors[i];
      const std::span<const Place> places(places_.data() + begins_[i], begins_[i + 1] - begins_[i]);
      DigestStream* const several = places.size() == 1 ? nullptr : &whole;
      if (several) several->reset();
      for (const Place& place : places) {
        const Piece& piece = *place.piece;
        const std::string& shard = manifest_.shards[place.shard].name;
        const auto digest = digest_piece(place, manifest_.tensors[i].width, several);
        if (!digest) {
          problem(fmt::format("{}: {}", shard, digest.error().message));
        } else if (*digest != piece.digest) {
          problem(fmt::format("{}: elements {} to {} of {} have digest {}, not {}", shard, piece.begin, piece.end,
                              tensor.name, digest->hex(), piece.digest.hex()));
        }
        if (!several && digest) tensor.digest = *digest;
      }
      if (several) tensor.digest = several->finish();
    }
    std::sort(contents_.tensors.begin(), contents_.tensors.end(),
              [](const AuditedTensor& a, const AuditedTensor& b) { return a.name < b.name; });
  }

  struct Place {
    const Piece* piece;
    std::size_t shard;
  };

  // Of the piece's bytes, which `whole` gets, too, if there is one.
  Result<Digest> digest_piece(const Place& place, std::int64_t width, DigestStream* whole) const {
    const ShardFile& file = files_[place.shard];
    const std::int64_t offset = place.piece->offset;
    const std::int64_t size = (place.piece->end - place.piece->begin) * width;
    if (file.whole) {
      Digest digest;
      FD_TRY_VOID(read_parts(file, offset, size, [&](auto bytes) {
        digest = digest_of(bytes);
        if (whole) whole->add(bytes);
      }));
      return digest;
    }
    DigestStream parts;
    FD_TRY_VOID(read_parts(file, offset, size, [&](auto bytes) {
      parts.add(bytes);
      if (whole) whole->add(bytes);
    }));
    return parts.finish();
  }

  Digest digest_of_list() const {
    std::vector<std::uint64_t> words;
    words.reserve(contents_.tensors.size() * 4);
    for (const AuditedTensor& tensor : contents_.tensors) {
      const Digest name = digest_of(std::string_view(tensor.name));
      words.insert(words.end(), {name.high, name.low, tensor.digest.high, tensor.digest.low});
    }
    return digest_of(std::span<const std::uint64_t>(words));
  }

  const CheckpointId& id_;
  const Manifest& manifest_;
  const std::vector<ShardFile>& files_;
  std::vector<Place> places_;        // by tensor, in the manifest's order
  std::vector<std::size_t> begins_;  // where those of each tensor begin, and the end
  CheckpointContents contents_;
};

}  // namespace

Result<Value> read_file(FileSystem& files, const std::string& path, std::int64_t size_max) {
  FD_TRY(const std::unique_ptr<File> file, files.open(path));
  FD_TRY(const std::int64_t size, file->size());
  if (size > size_max) {
    return Error{.code = Code::corrupted, .message = fmt::format("{} bytes; more than {} cannot be", size, size_max)};
  }
  FD_TRY(Value bytes, file->read(0, size));
  if (static_cast<std::int64_t>(bytes.size()) != size) {
    return Error{.code = Code::corrupted, .message = fmt::format("{} of {} bytes read", bytes.size(), size)};
  }
  return bytes;
}

ShardFile open_shard(FileSystem& files, const std::string& path, std::int64_t expected, std::int64_t& held) {
  ShardFile shard;
  const auto fail = [&](const Error& error) {
    shard.problem = error.code == Code::not_found ? std::string("is missing") : error.message;
    return std::move(shard);
  };
  auto file = files.open(path);
  if (!file) return fail(file.error());
  const auto size = (*file)->size();
  if (!size) return fail(size.error());
  shard.size = *size;
  if (shard.size != expected) {  // nothing in it can be right, and it may be far too large to read
    shard.problem = fmt::format("is {} bytes long, not {}", shard.size, expected);
    return shard;
  }
  if (shard.size <= whole_file_max && held + shard.size <= held_max) {
    auto whole = (*file)->read(0, shard.size);
    if (!whole) return fail(whole.error());
    if (static_cast<std::int64_t>(whole->size()) != shard.size) {
      shard.problem = fmt::format("{} of {} bytes read", whole->size(), shard.size);
      return shard;
    }
    held += shard.size;
    shard.digest = whole->digest();
    shard.whole = *std::move(whole);
    return shard;
  }
  DigestStream hasher;
  const Status read = read_parts(**file, 0, shard.size, [&](auto bytes) { hasher.add(bytes); });
  if (!read) return fail(read.error());
  shard.digest = hasher.finish();
  shard.file = *std::move(file);
  return shard;
}

std::shared_ptr<const CheckpointContents> decode_contents(const CheckpointId& id, const Manifest& manifest,
                                                          const std::vector<ShardFile>& files) {
  return Decoding(id, manifest, files).run();
}

std::shared_ptr<const CheckpointContents> no_contents(std::string problem) {
  auto contents = std::make_shared<CheckpointContents>();
  contents->problems.push_back(std::move(problem));
  return contents;
}

}  // namespace firedrill::auditing

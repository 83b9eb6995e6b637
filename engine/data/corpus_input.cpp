#include "engine/data/corpus_input.h"

#include <fmt/format.h>

#include <algorithm>

namespace firedrill {
namespace {

std::uint64_t digest_of_row(std::span<const std::byte> bytes) { return digest_of(bytes).low; }

// tokens u8 [rows, sequence + 1] and mask u8 [rows].
bool well_formed(const Value& rows, std::int64_t sequence) {
  if (!rows || !rows.is_pack() || rows.parts().size() != 2 || !rows[0] || !rows[1]) return false;
  const Value& tokens = rows[0];
  const Value& mask = rows[1];
  return tokens.dtype() == DType::u8 && mask.dtype() == DType::u8 && tokens.shape().rank() == 2 &&
         mask.shape().rank() == 1 && tokens.shape()[1] == sequence + 1 && tokens.shape()[0] == mask.shape()[0];
}

}  // namespace

SampleDigests::SampleDigests(const Value& text, std::int64_t sequence) : sequence_(sequence) {
  const auto samples = static_cast<std::size_t>(std::max<std::int64_t>((text.count() - 1) / sequence, 0));
  const auto step = static_cast<std::size_t>(sequence);
  digests_.reserve(samples);
  for (std::size_t i = 0; i < samples; ++i) digests_.push_back(digest_of_row(text.bytes().subspan(i * step, step + 1)));
}

Status SampleDigests::verify(const Value& samples, const Value& rows) const {
  if (!well_formed(rows, sequence_)) {
    return Error{.code = Code::corrupted, .message = "the input gave something else than rows of tokens"};
  }
  const auto wanted = samples.as<std::int64_t>();
  const auto given = static_cast<std::size_t>(rows[1].count());
  if (given < wanted.size()) {
    return Error{.code = Code::invalid_input,
                 .message = fmt::format("the input ended early: {} of {} rows, sample {} is missing", given,
                                        wanted.size(), wanted[given])};
  }
  const auto width = static_cast<std::size_t>(sequence_ + 1);
  const auto mask = rows[1].bytes();
  for (std::size_t row = 0; row < wanted.size(); ++row) {
    const bool absent = wanted[row] < 0;
    if ((mask[row] == std::byte{0}) != absent) {
      return Error{.code = Code::corrupted, .message = fmt::format("row {} of the input is masked wrongly", row)};
    }
    if (absent) continue;
    FD_CHECK(wanted[row] < static_cast<std::int64_t>(digests_.size()), "sample {} of {}", wanted[row], digests_.size());
    if (digest_of_row(rows[0].bytes().subspan(row * width, width)) == digests_[static_cast<std::size_t>(wanted[row])])
      continue;
    return Error{.code = Code::corrupted,
                 .message = fmt::format("sample {} was read as something else than the corpus holds", wanted[row]),
                 .hint = "the shard it lies in is damaged: read it again from its source"};
  }
  return {};
}

}  // namespace firedrill

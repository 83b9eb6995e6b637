// Fuzz target: any bytes as one of the small records: a shard's header, an attempt's .seen, a rank's listing. What can
// be read must be written again as the same.
#include "engine/base/check.h"
#include "engine/ckpt/fuzz_input.h"
#include "engine/ckpt/shard.h"
#include "engine/ckpt/survey.h"

namespace firedrill {
namespace {

void try_shard_header(std::string_view bytes, bool repaired) {
  std::string text(bytes);
  if (repaired && text.size() >= 16) {  // the digest stands at the header's end
    const Digest digest = digest_of(std::string_view(text).substr(0, text.size() - 16));
    for (std::size_t i = 0; i < 8; ++i) {
      text[text.size() - 16 + i] = static_cast<char>(digest.high >> (8 * i));
      text[text.size() - 8 + i] = static_cast<char>(digest.low >> (8 * i));
    }
  }
  const auto header = parse_shard_header(text);
  if (!header) return;
  FD_CHECK(header->run_id.size() <= run_id_size_max, "a run id is too long");
  FD_CHECK(encode_shard_header(*header) == text.substr(0, static_cast<std::size_t>(header->size)),
           "a header is not written as it was read");
}

void try_seen(std::string_view bytes, bool repaired) {
  const std::string text = repaired ? fuzz::with_seen_digest(bytes) : std::string(bytes);
  const auto seen = parse_seen(text);
  if (!seen) return;
  const Value written = encode_seen(*seen);
  const auto again = parse_seen(written.text());
  FD_CHECK(again && *again == *seen, "a .seen is not written as it was read");
}

void try_survey(std::string_view bytes) {
  const auto survey = decode_survey(Value::copy_of(bytes));
  FD_CHECK(!survey || decode_survey(encode_survey(0, *survey)), "a listing cannot be read again");
}

void run(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::uint8_t choice = input.byte();
  const bool repaired = (choice & 1) != 0;
  switch (choice >> 1 & 3) {
    case 0: try_shard_header(input.rest(), repaired); break;
    case 1: try_seen(input.rest(), repaired); break;
    default: try_survey(input.rest()); break;
  }
}

}  // namespace
}  // namespace firedrill

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  firedrill::run(data, size);
  return 0;
}

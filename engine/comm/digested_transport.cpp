#include "engine/comm/digested_transport.h"

#include <fmt/format.h>

#include <array>

#include "engine/comm/exchange.h"

namespace firedrill {
namespace {

// Of bytes, type and shape; of an empty Value, zeros.
Digest digest_of_payload(const Value& value) { return value ? value.key() : Digest{}; }

Value as_value(const Digest& digest) {
  const std::array<std::int64_t, 2> words = {static_cast<std::int64_t>(digest.high),
                                             static_cast<std::int64_t>(digest.low)};
  return Value::copy_of(std::span<const std::int64_t>(words));
}

bool is_sealed(const Value& message) {
  return message && message.is_pack() && message.parts().size() == 2 && message[1] && !message[1].is_pack() &&
         message[1].dtype() == DType::i64 && message[1].count() == 2;
}

}  // namespace

Status DigestedTransport::send(int peer, Tag tag, const Value& value, Time deadline) {
  return inner_.send(peer, tag, Value::pack({value, as_value(digest_of_payload(value))}), deadline);
}

Result<Value> DigestedTransport::recv(int peer, Tag tag, Time deadline) {
  FD_TRY(const Value message, inner_.recv(peer, tag, deadline));
  const auto changed = [&](std::string_view how) {
    return Error{.code = Code::corrupted,
                 .message = fmt::format("the payload from rank {} to rank {} was changed on its way ({}): {}", peer,
                                        rank(), describe_tag(tag), how),
                 .hint = "a link, a network card or the memory of one of the two is bad"};
  };
  if (!is_sealed(message)) return changed("it carries no digest");
  const auto words = message[1].as<std::int64_t>();
  const Digest sent{.high = static_cast<std::uint64_t>(words[0]), .low = static_cast<std::uint64_t>(words[1])};
  const Digest received = digest_of_payload(message[0]);
  if (sent == received) return message[0];
  return changed(fmt::format("sent with digest {}, received with {}", sent.hex(), received.hex()));
}

}  // namespace firedrill

// What precedes every message of tcp_transport on the wire: who sends it, in which run and attempt, and how long it is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "engine/base/bytes.h"
#include "engine/base/digest.h"
#include "engine/seam/transport.h"

namespace firedrill {

enum class EnvelopeKind : std::uint32_t {
  hello = 0x48314446,    // "FD1H": opens a connection, answered by the same
  message = 0x4D314446,  // "FD1M"
};

struct Envelope {
  EnvelopeKind kind = EnvelopeKind::message;
  std::int32_t from = 0;
  std::int32_t attempt = 0;
  Digest run;
  Tag tag = 0;
  std::uint32_t outline_size = 0;  // bytes of the Value's outline, which follows
  std::uint64_t bytes = 0;         // bytes of its buffers, which follow that
  std::int64_t sent = 0;           // when, in nanoseconds of the sender's steady clock
};

inline constexpr std::size_t envelope_size = 56;
inline constexpr std::uint32_t outline_bytes_max = 64U << 20;

inline void write_envelope(const Envelope& envelope, ByteWriter& out) {
  out.number(envelope.kind).number(envelope.from).number(envelope.attempt).number(envelope.outline_size);
  out.digest(envelope.run).number(envelope.tag).number(envelope.bytes).number(envelope.sent);
}

// Nothing: these bytes are no envelope.
inline std::optional<Envelope> read_envelope(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  Envelope envelope;
  envelope.kind = in.number<EnvelopeKind>();
  envelope.from = in.number<std::int32_t>();
  envelope.attempt = in.number<std::int32_t>();
  envelope.outline_size = in.number<std::uint32_t>();
  envelope.run = in.digest();
  envelope.tag = in.number<Tag>();
  envelope.bytes = in.number<std::uint64_t>();
  envelope.sent = in.number<std::int64_t>();
  if (!in.ok() || (envelope.kind != EnvelopeKind::hello && envelope.kind != EnvelopeKind::message)) return std::nullopt;
  return envelope;
}

}  // namespace firedrill

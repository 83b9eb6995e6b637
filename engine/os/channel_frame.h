// Frames of a channel: what both ends must write and read alike. A frame is its length (u32) and then kind and fields;
// names are defined once per channel, before they are used.
#pragma once

#include <cstdint>
#include <span>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/seam/event.h"
#include "engine/seam/pulse.h"

namespace firedrill {

enum class FrameKind : std::uint8_t {
  // From the rank.
  name,         // the text of the next number, from 1
  event,        // one event
  asked_event,  // one event; the rank waits for an answer
  state,        // a state digest and the digests under it
  outcome,      // the rank's last word
  heartbeat,    // a sign of life, and what the main task shows of its work
  // From the supervisor.
  answer,  // how many asked events have been taken in
  abort,
  stop,
};

inline constexpr std::size_t frame_length_size = sizeof(std::uint32_t);
inline constexpr std::uint32_t frame_bytes_max = 64U << 20;  // a longer one is garbage

// Opens a frame in an empty writer; close_frame fills in the length.
void open_frame(ByteWriter& out, FrameKind kind);
void close_frame(ByteWriter& out);

void write_event(const Event& event, ByteWriter& out);
Event read_event(ByteReader& in);
// How many signs of life there have been, and the pulse.
void write_heartbeat(std::uint64_t beats, const PulseReading& pulse, ByteWriter& out);
PulseReading read_pulse(ByteReader& in);
void write_error(const Error& error, ByteWriter& out);
Error read_error(ByteReader& in);

}  // namespace firedrill

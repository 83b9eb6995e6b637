#include "engine/os/channel_frame.h"

#include "engine/base/check.h"

namespace firedrill {

void open_frame(ByteWriter& out, FrameKind kind) {
  out.clear();
  out.number(std::uint32_t{0}).number(kind);
}

void close_frame(ByteWriter& out) {
  FD_CHECK(out.size() <= frame_bytes_max, "a frame of {} bytes", out.size());
  out.put(0, static_cast<std::uint32_t>(out.size() - frame_length_size));
}

void write_event(const Event& event, ByteWriter& out) {
  out.number(event.kind).number(event.phase).number(event.rank).number(event.attempt).number(event.step);
  out.number(event.a).number(event.b).number(event.c).number(event.name).number(event.detail);
  out.digest(event.digest).number(event.time.count());
}

Event read_event(ByteReader& in) {
  Event event;
  event.kind = in.number<EventKind>();
  event.phase = in.number<Phase>();
  event.rank = in.number<std::int16_t>();
  event.attempt = in.number<std::int32_t>();
  event.step = in.number<std::int64_t>();
  event.a = in.number<std::int64_t>();
  event.b = in.number<std::int64_t>();
  event.c = in.number<std::int64_t>();
  event.name = in.number<NameId>();
  event.detail = in.number<NameId>();
  event.digest = in.digest();
  event.time = Time(in.number<Time::rep>());
  return event;
}

void write_heartbeat(std::uint64_t beats, const PulseReading& pulse, ByteWriter& out) {
  out.number(beats).number(pulse.progress).number(pulse.waits_for).number(pulse.step).number(pulse.phase);
}

PulseReading read_pulse(ByteReader& in) {
  PulseReading pulse;
  pulse.progress = in.number<std::uint64_t>();
  pulse.waits_for = in.number<int>();
  pulse.step = in.number<std::int64_t>();
  pulse.phase = in.number<Phase>();
  return pulse;
}

void write_error(const Error& error, ByteWriter& out) {
  out.number(error.code).text(error.message).text(error.hint).number(error.retryable).number(error.injected);
}

Error read_error(ByteReader& in) {
  Error error;
  error.code = in.number<Code>();
  error.message = in.text();
  error.hint = in.text();
  error.retryable = in.number<std::uint8_t>() != 0;
  error.injected = in.number<std::uint8_t>() != 0;
  return error;
}

}  // namespace firedrill

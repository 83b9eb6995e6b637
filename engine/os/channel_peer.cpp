#include "engine/os/channel_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

#include "engine/base/check.h"
#include "engine/os/channel_frame.h"

namespace firedrill {

Result<std::pair<Descriptor, Descriptor>> make_channel() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Error{.code = Code::unavailable,
                 .message = fmt::format("no channel to a rank: {}", strerrordesc_np(errno)),
                 .hint = "raise the limit of open files (ulimit -n)"};
  }
  std::pair<Descriptor, Descriptor> channel{Descriptor(ends[0]), Descriptor(ends[1])};
  // Only the supervisor's end: a rank that says something waits until it is handed over.
  if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
    return Error{.code = Code::unavailable, .message = fmt::format("no channel to a rank: {}", strerrordesc_np(errno))};
  }
  return channel;
}

bool ChannelPeer::receive() {
  std::array<std::byte, 65536> chunk;
  while (socket_.valid()) {
    const ssize_t got = ::recv(socket_.number(), chunk.data(), chunk.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (got <= 0) break;
    buffer_.insert(buffer_.end(), chunk.begin(), chunk.begin() + got);
    if (!take_frames()) {
      understood_ = false;
      break;
    }
  }
  socket_.close();
  return false;
}

bool ChannelPeer::take_frames() {
  std::size_t done = 0;
  while (buffer_.size() - done >= frame_length_size) {
    std::uint32_t size = 0;
    std::memcpy(&size, buffer_.data() + done, sizeof(size));
    if (size > frame_bytes_max) return false;
    if (buffer_.size() - done < frame_length_size + size) break;
    if (!take_frame(std::span(buffer_).subspan(done + frame_length_size, size))) return false;
    done += frame_length_size + size;
  }
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(done));
  return true;
}

bool ChannelPeer::take_frame(std::span<const std::byte> frame) {
  ByteReader in(frame);
  const auto kind = in.number<FrameKind>();
  switch (kind) {
    case FrameKind::name: names_.emplace_back(in.text()); return in.ok();
    case FrameKind::event:
    case FrameKind::asked_event: {
      const Event event = read_event(in);
      if (!in.ok() || event.name >= names_.size() || event.detail >= names_.size()) return false;
      if (static_cast<int>(event.kind) >= event_kind_count || static_cast<int>(event.phase) >= phase_count)
        return false;
      if (kind == FrameKind::asked_event) ++asked_;
      listener_.on_event(rank_, event, names_[event.name], names_[event.detail], kind == FrameKind::asked_event);
      return true;
    }
    case FrameKind::state: {
      const Digest state = in.digest();
      std::vector<NamedDigest> tensors;
      for (auto left = in.number<std::uint32_t>(); left > 0 && in.ok(); --left) {
        const std::string_view name = in.text();
        tensors.push_back(NamedDigest{.name = name, .digest = in.digest()});
      }
      if (!in.ok()) return false;
      listener_.on_state(rank_, state, tensors);
      return true;
    }
    case FrameKind::heartbeat: {
      const auto beats = in.number<std::uint64_t>();
      const PulseReading pulse = read_pulse(in);
      if (!in.ok() || static_cast<int>(pulse.phase) >= phase_count) return false;
      listener_.on_heartbeat(rank_, beats, pulse);
      return true;
    }
    case FrameKind::outcome: {
      RankOutcome outcome;
      outcome.end = in.number<RankEnd>();
      outcome.error = read_error(in);
      outcome.payload = in.text();
      if (!in.ok() || outcome.end > RankEnd::left) return false;
      listener_.on_outcome(rank_, outcome);
      return true;
    }
    default: return false;
  }
}

void ChannelPeer::answer() {
  FD_CHECK(answered_ < asked_, "rank {} asked {} times and has all answers", rank_, asked_);
  ByteWriter out;
  open_frame(out, FrameKind::answer);
  out.number(++answered_);
  close_frame(out);
  send(out.bytes());
}

void ChannelPeer::abort(const Error& reason) {
  ByteWriter out;
  open_frame(out, FrameKind::abort);
  write_error(reason, out);
  close_frame(out);
  send(out.bytes());
}

void ChannelPeer::stop(const Error& reason) {
  ByteWriter out;
  open_frame(out, FrameKind::stop);
  write_error(reason, out);
  close_frame(out);
  send(out.bytes());
}

// A rank always has a reader and is told very little, so its socket is never full while it lives; to one that is
// stopped or gone nothing needs to be said.
void ChannelPeer::send(std::span<const std::byte> frame) {
  if (!socket_.valid()) return;
  ssize_t sent = 0;
  do {
    sent = ::send(socket_.number(), frame.data(), frame.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
}

}  // namespace firedrill

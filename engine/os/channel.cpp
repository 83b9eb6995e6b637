#include "engine/os/channel.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "engine/os/channel_frame.h"

namespace firedrill {
namespace {

// All bytes, or false: the other end is gone.
bool send_all(int socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

bool receive_all(int socket, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

bool receive_frame(int socket, std::vector<std::byte>& frame) {
  std::uint32_t size = 0;
  if (!receive_all(socket, std::as_writable_bytes(std::span(&size, 1))) || size > frame_bytes_max) return false;
  frame.resize(size);
  return receive_all(socket, frame);
}

}  // namespace

Channel::Channel(Descriptor socket, std::function<void(const Command&)> on_command)
    : socket_(std::move(socket)), on_command_(std::move(on_command)), reader_([this] { read_commands(); }) {}

Channel::~Channel() {
  // Wakes the reader; what was sent before stays readable for the supervisor.
  closing_ = true;
  ::shutdown(socket_.number(), SHUT_RDWR);
  reader_.join();
}

void Channel::event(const Event& event) {
  const std::lock_guard lock(mutex_);
  open_frame(frame_, FrameKind::event);
  write_event(event, frame_);
  send_locked();
}

void Channel::ask(const Event& event) {
  std::unique_lock lock(mutex_);
  open_frame(frame_, FrameKind::asked_event);
  write_event(event, frame_);
  send_locked();
  const std::uint64_t mine = ++asked_;
  changed_.wait(lock, [&] { return answered_ >= mine || gone_; });
}

NameId Channel::intern(std::string_view text) {
  if (text.empty()) return 0;
  const std::lock_guard lock(mutex_);
  if (const auto known = names_.find(text); known != names_.end()) return known->second;
  const NameId id = static_cast<NameId>(names_.size() + 1);
  names_.emplace(text, id);
  open_frame(frame_, FrameKind::name);
  frame_.text(text);
  send_locked();
  return id;
}

bool Channel::knows_state(const Digest& state) {
  const std::lock_guard lock(mutex_);
  return states_.contains(state);
}

void Channel::describe_state(const Digest& state, std::span<const NamedDigest> tensors) {
  const std::lock_guard lock(mutex_);
  if (!states_.insert(state).second) return;
  open_frame(frame_, FrameKind::state);
  frame_.digest(state).number(static_cast<std::uint32_t>(tensors.size()));
  for (const NamedDigest& tensor : tensors) frame_.text(tensor.name).digest(tensor.digest);
  send_locked();
}

void Channel::heartbeat(std::uint64_t beats, const PulseReading& pulse) {
  const std::lock_guard lock(mutex_);
  open_frame(frame_, FrameKind::heartbeat);
  write_heartbeat(beats, pulse, frame_);
  send_locked();
}

void Channel::finish(const RankOutcome& outcome) {
  const std::lock_guard lock(mutex_);
  open_frame(frame_, FrameKind::outcome);
  frame_.number(outcome.end);
  write_error(outcome.error, frame_);
  frame_.text(outcome.payload);
  send_locked();
}

void Channel::send_locked() {
  close_frame(frame_);
  // A supervisor that is gone is noticed by the reader.
  if (!gone_ && !send_all(socket_.number(), frame_.bytes())) gone_ = true;
}

void Channel::read_commands() {
  std::vector<std::byte> frame;
  while (receive_frame(socket_.number(), frame)) {
    ByteReader in(frame);
    const auto kind = in.number<FrameKind>();
    if (kind == FrameKind::answer) {
      {
        const std::lock_guard lock(mutex_);
        answered_ = in.number<std::uint64_t>();
      }
      changed_.notify_all();
      continue;
    }
    const CommandKind command = kind == FrameKind::stop ? CommandKind::stop : CommandKind::abort;
    on_command_(Command{.kind = command, .reason = read_error(in)});
  }
  {
    const std::lock_guard lock(mutex_);
    gone_ = true;
  }
  changed_.notify_all();
  if (closing_) return;
  on_command_(Command{.kind = CommandKind::abort,
                      .reason = Error{.code = Code::aborted, .message = "the supervisor's end of the channel closed"}});
}

void ChannelObserver::event(const Event& event) {
  Event stamped = event;
  stamped.time = clock_.now();
  channel_.event(stamped);
}

void ChannelObserver::event_answered(const Event& event) {
  Event stamped = event;
  stamped.time = clock_.now();
  channel_.ask(stamped);
}

}  // namespace firedrill

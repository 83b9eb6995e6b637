#include "engine/os/stamped_socket.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>

namespace firedrill {
namespace {

std::int64_t nanoseconds_of(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

std::int64_t now_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return nanoseconds_of(now);
}

// The kernel's stamp is of the wall clock, which may have been set since; it never lies ahead.
std::int64_t steady_time_of(msghdr& message) {
  const std::int64_t now = now_of(CLOCK_MONOTONIC);
  for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_TIMESTAMPNS) continue;
    timespec stamp{};
    std::memcpy(&stamp, CMSG_DATA(one), sizeof stamp);
    return now - std::max<std::int64_t>(0, now_of(CLOCK_REALTIME) - nanoseconds_of(stamp));
  }
  return now;
}

}  // namespace

StampedSocket::StampedSocket(Socket socket) : socket_(std::move(socket)) {
  const int on = 1;
  // Refused: the time of reading has to do.
  static_cast<void>(::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on));
}

std::optional<StampedSocket::Read> StampedSocket::read_into(std::span<iovec> parts) {
  if (parts.empty()) return Read{};
  alignas(cmsghdr) std::array<char, 256> control{};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = -1;
  do {
    got = ::recvmsg(socket_.native_handle(), &message, MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
  if (got < 0) return Read{.error = {errno, boost::system::system_category()}};
  if (got == 0) return Read{.error = boost::asio::error::eof};
  arrived_ = steady_time_of(message);
  return Read{.error = {}, .bytes = static_cast<std::size_t>(got)};
}

}  // namespace firedrill

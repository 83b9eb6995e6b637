#include "engine/os/unix_message.h"

#include <errno.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>

namespace firedrill {
namespace {

// Room for one descriptor beside the bytes, aligned as the kernel wants it.
union Ancillary {
  cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int))];
};

bool send_all(int socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

// The length goes first, and the descriptor with its first byte.
bool send_length(int socket, std::uint64_t length, int descriptor) {
  iovec part{.iov_base = &length, .iov_len = sizeof(length)};
  Ancillary ancillary{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = ancillary.bytes;
    message.msg_controllen = sizeof(ancillary.bytes);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(sizeof(length));
}

bool receive_length(int socket, std::uint64_t& length, Descriptor& descriptor) {
  iovec part{.iov_base = &length, .iov_len = sizeof(length)};
  Ancillary ancillary{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = ancillary.bytes;
  message.msg_controllen = sizeof(ancillary.bytes);
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
  } while (got < 0 && errno == EINTR);
  const cmsghdr* header = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header && header->cmsg_type == SCM_RIGHTS) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(header), sizeof(int));
    descriptor = Descriptor(number);
  }
  return got == static_cast<ssize_t>(sizeof(length));
}

}  // namespace

bool send_message(int socket, std::span<const std::byte> bytes, int descriptor) {
  return send_length(socket, bytes.size(), descriptor) && send_all(socket, bytes);
}

std::optional<UnixMessage> receive_message(int socket) {
  UnixMessage message;
  std::uint64_t length = 0;
  if (!receive_length(socket, length, message.descriptor)) return std::nullopt;
  message.bytes.resize(length);
  std::span<std::byte> rest(message.bytes);
  while (!rest.empty()) {
    const ssize_t got = ::recv(socket, rest.data(), rest.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    rest = rest.subspan(static_cast<std::size_t>(got));
  }
  return message;
}

}  // namespace firedrill

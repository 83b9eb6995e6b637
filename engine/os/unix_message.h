// Messages between the supervisor and the zygote over a Unix socket: bytes, and with them a descriptor.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "engine/os/descriptor.h"

namespace firedrill {

struct UnixMessage {
  std::vector<std::byte> bytes;
  Descriptor descriptor;  // one that came along
};

// Sends all bytes and a copy of `descriptor` (-1: none). False: the other end is gone.
bool send_message(int socket, std::span<const std::byte> bytes, int descriptor);
// Nothing: the other end is gone.
std::optional<UnixMessage> receive_message(int socket);

}  // namespace firedrill

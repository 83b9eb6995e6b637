// What the supervisor tells the zygote to fork: the bytes of one order. The answer is the pid of the new rank, or -1.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "engine/base/bytes.h"

namespace firedrill {

struct StartOrder {
  pid_t supervisor = 0;
  pid_t group = 0;  // the process group to join; 0: a new one
  int rank = 0;
  int attempt = 0;
  std::string payload;
};

inline void write_start_order(const StartOrder& order, ByteWriter& out) {
  out.number(order.supervisor).number(order.group).number(order.rank).number(order.attempt).text(order.payload);
}

inline std::optional<StartOrder> read_start_order(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  StartOrder order;
  order.supervisor = in.number<pid_t>();
  order.group = in.number<pid_t>();
  order.rank = in.number<int>();
  order.attempt = in.number<int>();
  order.payload = in.text();
  if (!in.ok() || !in.at_end()) return std::nullopt;
  return order;
}

}  // namespace firedrill

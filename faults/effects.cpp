#include "faults/effects.h"

#include <fmt/format.h>

namespace firedrill {

std::string words_of(const CallSite& call) {
  if (call.message != nullptr) {
    return fmt::format("message {} rank {}", call.op == SeamOp::send ? "to" : "from", call.message->peer);
  }
  if (call.collective == nullptr) return std::string(call.path);
  const CollectiveCall& made = *call.collective;
  const Group& group = made.group;
  const bool out = made.op == CollectiveOp::send;
  const std::string stream =
      made.peer < 0 ? stream_of(group) : stream_of(group, out ? group.me : made.peer, out ? made.peer : group.me);
  return fmt::format("{} call {} {} {}", stream, made.sequence, to_string(made.op), made.purpose);
}

}  // namespace firedrill

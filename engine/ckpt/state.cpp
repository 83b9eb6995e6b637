#include "engine/ckpt/state.h"

#include <fmt/format.h>

#include <deque>

namespace firedrill {

Digest digest_of_state(const StateView& state) {
  DigestBuilder builder;
  for (const StateGroup& group : state) builder.add(group.value.key());
  return builder.finish();
}

std::string name_of(const TensorSlot& tensor) {
  if (tensor.whole()) return tensor.name;
  return fmt::format("{}[{}:{}]", tensor.name, tensor.begin, tensor.begin + tensor.length);
}

void describe_state(Observer& observer, const StateView& state, const Digest& state_digest) {
  if (observer.knows_state(state_digest)) return;
  std::deque<std::string> names;  // NamedDigest only refers to them
  std::vector<NamedDigest> tensors;
  for (const StateGroup& group : state) {
    for (const TensorSlot& tensor : group.tensors) {
      names.push_back(name_of(tensor));
      tensors.push_back({.name = names.back(), .digest = group.value.slice(tensor.offset, tensor.count()).digest()});
    }
  }
  observer.describe_state(state_digest, tensors);
}

}  // namespace firedrill

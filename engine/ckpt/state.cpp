#include "engine/ckpt/state.h"

namespace firedrill {

Digest digest_of_state(const StateView& state) {
  DigestBuilder builder;
  for (const StateGroup& group : state) builder.add(group.value.key());
  return builder.finish();
}

void describe_state(Observer& observer, const StateView& state, const Digest& state_digest) {
  if (observer.knows_state(state_digest)) return;
  std::vector<NamedDigest> tensors;
  for (const StateGroup& group : state) {
    for (const TensorSlot& tensor : group.tensors) {
      tensors.push_back({.name = tensor.name, .digest = group.value.slice(tensor.offset, tensor.count()).digest()});
    }
  }
  observer.describe_state(state_digest, tensors);
}

}  // namespace firedrill

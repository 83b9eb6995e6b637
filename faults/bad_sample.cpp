// bad_sample: one row of a micro-batch, the first, is read as garbage. Every byte of it is another one.
#include <algorithm>
#include <utility>

#include "faults/kinds.h"

namespace firedrill {

Status take_bad_sample(const Firing& firing, Effects&) {
  Value& rows = *firing.call.value;
  MutableValue tokens(rows[0].dtype(), rows[0].shape());
  std::ranges::copy(rows[0].bytes(), tokens.bytes().begin());
  for (std::byte& byte : tokens.bytes().first(static_cast<std::size_t>(rows[0].shape()[1]))) byte ^= std::byte{0xA5};
  rows = Value::pack({std::move(tokens).freeze(), rows[1]});
  return {};
}

}  // namespace firedrill

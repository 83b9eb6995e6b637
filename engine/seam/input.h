// Input: the rows that a rank draws from the training text. What lies behind it (a file that was loaded, shards on a
// server) may be slow, unreadable, shorter than it should be, or give wrong bytes without a word; so what comes out is
// checked against the corpus before it is used (engine/data/sample_digests.h).
//
// Threads: the rank's main task. Errors: io_error, invalid_input, and dead.
#pragma once

#include "engine/base/result.h"
#include "engine/base/value.h"

namespace firedrill {

class Input {
 public:
  virtual ~Input() = default;
  // `samples`: i64 [rows], below 0 where a row has none. Result: a pack {tokens u8 [rows, sequence + 1], mask u8
  // [rows]}; a row without a sample is zero in both.
  virtual Result<Value> rows(const Value& samples) = 0;
};

class ForwardingInput : public Input {
 public:
  explicit ForwardingInput(Input& inner) : inner_(inner) {}
  Result<Value> rows(const Value& samples) override { return inner_.rows(samples); }

 protected:
  Input& inner_;
};

}  // namespace firedrill

// What went wrong in the environment: a disk, a peer, a deadline, an input. Our own bugs are not errors; see check.h.
//
// An error is a value that travels in a Result. Its message names the values involved; its hint names the remedy. An
// error made by a fault carries `injected`, so that nobody ever has to recognise one by its text.
#pragma once

#include <string>
#include <string_view>

namespace firedrill {

enum class Code {
  dead,            // this rank was killed: every call of it returns this at once and has no effect
  fenced,          // this rank's attempt is over: the call was refused by the world, nothing happened
  aborted,         // the group gave up (a peer died or failed); the wait was ended from outside
  timeout,         // a deadline passed
  not_found,       // no such name
  already_exists,  // an exclusive create found the name taken
  io_error,        // the storage failed (EIO)
  no_space,        // the storage is full (ENOSPC)
  corrupted,       // bytes are there and are not what their digest, size or format says
  mismatch,        // two sides that must agree do not (job digest, provenance, fingerprint)
  invalid_input,   // what the user gave cannot work
  unavailable,     // nobody answers now; a later try may succeed
  internal,        // a check in our own code failed; always a finding
};

struct Error {
  Code code = Code::internal;
  std::string message;     // what happened, with the values
  std::string hint = {};   // the remedy, if there is one
  bool retryable = false;  // the same call may succeed later
  bool injected = false;   // a fault made it
};

std::string_view to_string(Code code);

// "io_error: write to shards/4-1-1/model-0 failed (hint: ...) [injected]"
std::string describe(const Error& error);

}  // namespace firedrill

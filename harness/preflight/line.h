// RankLine: how a rank of a check speaks with the program that started it: lines of JSON over a socket, one message
// each. The rank says what it is about to do, so that one that never comes back is found where it is.
//
// Threads: one. A supervisor that is gone ends the process.
#pragma once

#include <string>
#include <string_view>

#include "engine/os/descriptor.h"
#include "harness/preflight/finding.h"

namespace firedrill::preflight {

// Why what is looked at does not work, and what would.
struct ProbeFailure {
  std::string why;
  std::string needed;
  std::string remedy;
};

class RankLine {
 public:
  explicit RankLine(Descriptor socket) : socket_(std::move(socket)) {}

  void doing(std::string_view what);
  // Returns when all ranks of the team have called it as often. `mine`: what is handed to all; the result has one of
  // each rank.
  Json meet(const Json& mine = Json());
  // The last word.
  void done(const Json& measured);
  void failed(const ProbeFailure& failure);  // what is looked at does not work
  void broken(std::string_view why);         // the probe itself is

 private:
  void say(const Json& message);
  std::string hear();

  Descriptor socket_;
  std::string heard_;
};

}  // namespace firedrill::preflight

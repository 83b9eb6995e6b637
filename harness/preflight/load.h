// The load of level full: what is looked at once by the other checks is looked at round by round.
//
// Of a speed one round may be wrong, as something else was busy just then: in a load of many rounds that is sure to
// happen. A link or rank that is slow is so in many of them, and only that is a no-go.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "harness/preflight/finding.h"

namespace firedrill::preflight {

// Findings of speeds, by where they are.
class SpeedTally {
 public:
  void add(const Finding& finding);
  // After so many rounds: as they are what was found in a third of them at least; the others as notes.
  std::vector<Finding> findings(std::size_t rounds) const;

 private:
  struct Seen {
    Finding first;
    std::size_t times = 0;
  };
  std::map<std::string, Seen> by_where_;
};

}  // namespace firedrill::preflight

// Story: a finding for people. The shortest sequence of operations that leaves the bad state, and a picture of the
// disk: of each operation in flight whether it is durable, lost or torn.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/explore/explore.h"

namespace firedrill {

struct Story {
  struct Line {
    std::string operation;    // "rank 2's write of 1152 bytes to shards/4-1-1/model-2"
    std::string fate;         // "durable", "lost", "torn at sector 2"
    std::string kind = {};    // of an operation on a file: "write"; else empty
    std::string path = {};    // the file or directory; the root is empty
    std::string second = {};  // of a rename: the new name
    int rank = -1;
  };
  std::string what;               // the oracle's words
  std::vector<Line> operations;   // of the shortest cut that may have failed, in order
  std::vector<std::string> disk;  // what was read of the disk, as far as it has more than one possibility
  std::size_t losses = 0;         // operations that did not become durable

  std::vector<std::string> lines() const;
};

// `subject` reads the state once more, to leave out of the story what it does not depend on.
Story tell(const crash::CrashSpace& space, const CheckSubject& subject, const Finding& finding);

// The same cell and value in another space over the same trace. None: that space does not know it.
std::optional<std::pair<crash::CellId, crash::ValueIndex>> same_in(const crash::CrashSpace& from,
                                                                   const crash::CrashSpace& to, crash::CellId cell,
                                                                   crash::ValueIndex value);

// The one with the fewest operations, and of those the one with the fewest losses. At most `tried` are looked at.
Story tell_shortest(const crash::CrashSpace& space, const CheckSubject& subject, const std::vector<Finding>& findings,
                    std::size_t tried = 64);

}  // namespace firedrill

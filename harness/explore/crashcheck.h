// Crashcheck: a scenario's run is recorded, and every content that a power loss may leave of it is recovered from. What
// is explored is said by the scenario's crash section (CrashSpec): the run as it is; or the run with a kill behind each
// of its operations; and, if asked for, every recovery again with a second power loss.
//
// Threads: crashcheck() starts and joins its own. Errors: of the recording; a space that cannot be built.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/explore/cases.h"
#include "harness/explore/explore.h"
#include "harness/explore/story.h"
#include "harness/explore/subject.h"

namespace firedrill {

struct CrashCheckOptions {
  crash::ProfileKind profile = crash::ProfileKind::posix;
  std::optional<EngineKind> engine;  // none: explicit where its count says that it can finish
  int jobs = 1;
  bool keep_digests = true;
  bool stop_at_first = false;
  double seconds_max = 600;    // then what is left is sampled
  double sample_seconds = 20;  // for so long at most, all cases together
  std::uint64_t seed = 1;      // of the samples
  std::function<void(std::string_view)> progress;
};

struct CrashCheckResult {
  EngineKind engine = EngineKind::explicit_states;
  std::size_t cases = 0;       // traces explored
  std::size_t operations = 0;  // in flight, of all cases
  crash::Count legal;          // counted independently of the engines
  crash::Count covered;
  std::uint64_t checked = 0;  // states in which something was found, restored on all ranks and compared
  std::uint64_t fresh = 0;    // states in which nothing is listed and nothing is owed
  std::uint64_t runs = 0;
  std::uint64_t violations = 0;
  double seconds = 0.0;          // exploring, wall clock
  double first_violation = 0.0;  // seconds from the beginning, recording included
  bool torn = true;
  bool complete = false;  // every legal state is covered, and the covered ones are as many as were counted
  std::vector<std::string> notes;
  std::optional<Story> story;  // of the shortest violation
};

Result<CrashCheckResult> crashcheck(const ExploreSubject& subject, const CrashSpec& spec,
                                    const std::vector<CrashCase>& cases, const CrashCheckOptions& options);

}  // namespace firedrill

// Exploring a crash space: the two engines, what they are given and what they give.
//
//   explicit  assigns every cell that can be reached, value by value: each leaf is one distinct legal content, built by
//             reference and checked
//   lazy      gives a cell a value when the code under test first reads it, and replays with every other legal value:
//             each leaf covers all contents that agree with what was read
//
// Both are exact for code that is deterministic and reads through the seam only. Both spread over `jobs` threads: each
// walks all short prefixes of choices and takes those whose hash is its own (split by the top choice alone, one thread
// would get most of the work).
//
// Threads: explore() starts and joins its own. Errors: those of a check are findings; a CheckFailure of ours passes on.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "faults/persistence/crash_space.h"
#include "harness/explore/restore_check.h"

namespace firedrill {

enum class EngineKind : std::uint8_t { explicit_states, lazy };
std::string_view to_string(EngineKind engine);  // "explicit", "lazy"

// A state that a recovery does not do right by.
struct Finding {
  std::string what;  // the oracle's words
  // What was read of the disk, in the order of reading: enough to show it again.
  std::vector<std::pair<crash::CellId, crash::ValueIndex>> assignment;
  std::optional<CheckpointId> required;
};

struct ExploreOptions {
  int jobs = 1;
  bool keep_digests = true;
  // A checkpoint that was acknowledged before the trace began. None: only those of the trace count.
  std::optional<CheckpointId> required;
  std::size_t findings_max = 64;  // of each job; no more are kept. Then it goes on
  bool stop_at_first = false;     // of all findings
  // The runs of a job after which it gives up; the result is not complete then.
  std::uint64_t runs_max = ~std::uint64_t{0};
  std::optional<std::chrono::steady_clock::time_point> give_up;
  // Called for each lazy leaf that passed, by the thread that found it. May be empty.
  std::function<void(crash::Partial& leaf, const CheckAnswer& answer)> on_leaf;
  std::function<void(std::uint64_t runs)> progress;  // now and then, by any thread
};

struct Exploration {
  EngineKind engine = EngineKind::lazy;
  crash::Count covered;        // distinct legal contents that the leaves stand for
  std::uint64_t runs = 0;      // checks made, with those of prefixes that another job owns
  std::uint64_t restored = 0;  // leaves in which something was found, restored on all ranks and compared
  std::uint64_t fresh = 0;     // leaves in which nothing is listed and nothing is owed
  std::vector<Finding> findings;
  std::uint64_t violations = 0;
  bool complete = false;  // all was walked
  double seconds = 0.0;   // wall clock

  std::uint64_t leaves() const { return restored + fresh + violations; }
};

Exploration explore_explicitly(const crash::CrashSpace& space, const CheckSubject& subject,
                               const ExploreOptions& options);
Exploration explore_lazily(const crash::CrashSpace& space, const CheckSubject& subject, const ExploreOptions& options);

}  // namespace firedrill

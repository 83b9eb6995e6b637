// Diagnosis: who holds a run up, and why, from its history alone and in the order in which a practitioner looks: one
// rank against the group, part by part of a step; the slowest and not the mean; latency against bandwidth; placement;
// then the one thing to change next, with the evidence.
//
// A rank's part is compared with the median of the ranks that do the same work (those of its pipeline stage), a link
// with the fast ones of its kind, a stage with the median of the others. Something stands out if it takes `stands_out`
// times as long (figures.h says what of a rank's times), and if a step, or a save against the training between two of
// them, would be at least `share_that_counts` shorter without it. What holds up all ranks alike has nothing to be
// compared with in its own run: another one (`against`) shows it.
//
// Threads: pure functions. Errors: of `comparable` alone.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/diagnose/figures.h"

namespace firedrill {

inline constexpr double stands_out = 2.5;
inline constexpr double share_that_counts = 0.1;

enum class CauseKind : std::uint8_t {
  slow_rank,
  slow_input,
  slow_link,
  slow_disk,
  small_buckets,
  unbalanced_stage,
  spread_group,  // over nodes, although it talks within the layers
  grown,         // a part that takes longer than in the run it is compared with, on all ranks alike
};
std::string_view to_string(CauseKind kind);  // "slow rank"

// What to change next, and into what.
struct Change {
  std::string variable;  // "layout.bucket", "node of rank 2"
  std::string now;
  std::string next;
};

struct Cause {
  CauseKind kind = CauseKind::slow_rank;
  std::string where;  // "rank 2 (node 1)", "link 0-2", "stage 1 (ranks 2, 3)"
  std::vector<int> ranks;
  std::int64_t cost = 0;  // nanoseconds of a step; of a save its share of each step between two
  double times = 0;       // as long as what it was compared with
  std::string evidence;
  Change change;
};

struct Diagnosis {
  Figures figures;
  std::vector<Cause> causes;      // what costs most first; empty: nothing stands out
  std::optional<Change> next;     // of the first cause; without one what the layout itself leaves idle
  std::string next_why;           // its evidence
  std::vector<std::string> told;  // of the run it is compared with
};

Diagnosis diagnose(Figures figures);
// Whether two runs say anything of each other: those of one world and one model do, in whatever layout. Errors:
// invalid_input, with what differs.
Status comparable(const Plan& now, const Plan& other);
// Also names what grew against the other run, which is comparable.
Diagnosis diagnose(Figures figures, const Figures& against);

nlohmann::ordered_json json_of(const Diagnosis& diagnosis);
std::string to_text(const Diagnosis& diagnosis);

}  // namespace firedrill

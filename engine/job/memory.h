// Memory planner: what each rank holds under a layout, in bytes. Pure functions of job and layout, for any shape.
//
// Persistent state is exact: with 16-bit parameters 2 bytes a parameter, 2 its gradient, 4 its fp32 master copy and 8
// the two moments of Adam (16 GB per billion parameters, unsharded); in fp32 4 + 4 + 0 + 8. ZeRO (Rajbhandari et al.,
// SC'20) shards over the dp ranks: from stage 1 moments and masters, with 3 parameters. Gradients add up per dp lane
// (and per chunk where lanes share a segment), in fp32 if there are several micro-batches: a rank has one accumulator
// for each lane that it owns, and only at the step's end one sum. From ZeRO 2 on that sum is a shard; while
// micro-batches add up the accumulators stay whole.
//
// Activations are what lies between segments: the inputs that backwards want again, for as many micro-batches as the
// schedule has under way, the activation and the gradient in hand, tokens. `working` is an estimate of the inside of
// the largest segment (attention without a matrix of scores), `buffers` of what exchanges need: one bucket of
// gradients, the gathered parameters of ZeRO 3, one activation. `reserve` is a tenth of the GPU's memory, for its
// context, the communicators and fragmentation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/job/layout.h"

namespace firedrill {

// Bytes of one element.
struct ElementBytes {
  int parameter = 4;
  int gradient = 4;
  int master = 0;
  int moments = 8;  // both
  int activation = 4;
  int state() const { return parameter + gradient + master + moments; }
};
ElementBytes element_bytes(const Job& job);

struct RankMemory {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;  // at their peak
  std::int64_t masters = 0;
  std::int64_t moments = 0;
  std::int64_t activations = 0;  // at their peak
  std::int64_t working = 0;
  std::int64_t buffers = 0;

  std::int64_t persistent() const { return parameters + gradients + masters + moments; }
  std::int64_t total() const { return persistent() + activations + working + buffers; }
  bool operator==(const RankMemory&) const = default;
};

enum class Accumulators : std::uint8_t {
  by_lane,  // what this engine does, so that no layout changes a bit
  one,      // a rank adds all of its gradients into one: what trainers do whose sums depend on the layout
};

// Of the rank at (pp, dp); ranks that differ in tp, cp or ep alone hold as much.
RankMemory memory_of(const Job& job, const Layout& layout, int pp, int dp,
                     Accumulators accumulators = Accumulators::by_lane);

// Micro-batches whose activations a rank holds at once: in forwards, counted by its runs of layers.
int micro_batches_in_flight(const Job& job, const Layout& layout, int pp);

// Ranks that hold the same.
struct RankClass {
  int pp = 0;
  int first_rank = 0;
  int ranks = 0;
  int in_flight = 0;
  RankMemory memory;
};

struct MemoryPlan {
  std::vector<RankClass> classes;  // by stage
  std::size_t worst = 0;           // the class with the largest total
  std::int64_t gpu_memory = 0;
  std::int64_t reserve = 0;

  std::int64_t needed() const { return classes[worst].memory.total() + reserve; }
  std::int64_t margin() const { return gpu_memory - needed(); }
  bool fits() const { return margin() >= 0; }
};

// "14.2GB": for people.
std::string rounded_bytes(double bytes);

// The layout has no mistakes (mistakes_in).
struct MemoryOptions {
  std::int64_t gpu_memory = 0;  // bytes
  Accumulators accumulators = Accumulators::by_lane;
};
MemoryPlan plan_memory(const Job& job, const Layout& layout, const MemoryOptions& options);

// What the worst rank needs, reserve included: one dp rank of each stage is looked at. For searches.
std::int64_t memory_needed(const Job& job, const Layout& layout, const MemoryOptions& options);

}  // namespace firedrill

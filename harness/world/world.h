// World: what hosts the ranks. It runs one attempt at a time, writes everything that happens into the history, and lets
// the disk live on from attempt to attempt. Both worlds run the same rank code on other implementations of the seams.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/ckpt/protocol.h"
#include "engine/comm/liveness.h"
#include "engine/data/corpus_input.h"
#include "engine/data/sampler.h"
#include "engine/model/transformer.h"
#include "engine/train/publisher.h"
#include "engine/train/rules.h"
#include "engine/train/shape.h"
#include "harness/history/history.h"
#include "harness/plan/plan.h"

namespace firedrill {

// Makes the parts of the engine that a mutant may replace. One call per rank and attempt.
using ProtocolFactory = std::function<std::unique_ptr<Protocol>()>;
using PublisherFactory = std::function<std::unique_ptr<AsyncPublisher>()>;

// The right one.
inline std::unique_ptr<AsyncPublisher> make_async_publisher() { return std::make_unique<AsyncPublisher>(); }

// Makes the training rules that a mutant may replace.
using RulesFactory = std::function<std::unique_ptr<TrainingRules>()>;
inline std::unique_ptr<TrainingRules> make_training_rules() { return std::make_unique<TrainingRules>(); }

// Makes the rules of the watchdog that a mutant may replace. One call per attempt, on the supervisor's side.
using LivenessFactory = std::function<std::unique_ptr<LivenessRules>()>;
inline std::unique_ptr<LivenessRules> make_liveness_rules() { return std::make_unique<LivenessRules>(); }

// The same by the name of a mutant (empty: the right engine), for a process that learns the name from its plan.
struct MutantParts {
  std::unique_ptr<Protocol> (*protocol)(std::string_view mutant) = nullptr;
  std::unique_ptr<AsyncPublisher> (*publisher)(std::string_view mutant) = nullptr;
  std::unique_ptr<TrainingRules> (*rules)(std::string_view mutant) = nullptr;
};

// What every attempt of a run needs, made once. References outlive the world.
struct Subject {
  const Plan& plan;
  const Model& model;
  const Sampler& sampler;
  const Value& text;  // the training part of the corpus
  const RunIdentity& identity;
  ProtocolFactory protocol;
  PublisherFactory publisher = make_async_publisher;  // called only where publishes are asynchronous
  RulesFactory rules = make_training_rules;
  LivenessFactory liveness = make_liveness_rules;
  const SampleDigests* digests = nullptr;  // of `text`; none: rows are not verified
  // Of the plan's layout and of that of its restarts, if whoever runs many plans has them.
  const LayoutShape* shape = nullptr;
  const LayoutShape* shape_of_restarts = nullptr;
  const RunIdentity* identity_of_restarts = nullptr;
};

struct AttemptOrder {
  int attempt = 1;
  std::int64_t floor = -1;      // highest acknowledged step; -1: none
  std::vector<int> fired;       // by index in the plan's faults: how often each fired in earlier attempts
  bool other_layout = false;    // in the layout of the plan's recovery, not in its own
  std::vector<int> nodes = {};  // the node that stands where node_of() says i; empty: node i
  Duration pause{0};            // passes before it starts
};

struct AttemptResult {
  int finished = 0;    // ranks that completed the job
  int failed = 0;      // ranks that ended with an error
  int died = 0;        // ranks that were killed
  int left = 0;        // ranks that left after an agreed preemption
  int broken = 0;      // ranks in which one of our own checks failed
  bool stuck = false;  // all that was left waited without end
  std::string why;     // the first end that was not a finish, in words
};

class World {
 public:
  virtual ~World() = default;
  // Runs all ranks until each has ended and is reaped or cut off. Errors are the world's own (no process can be
  // started): they make the run's verdict unknown.
  virtual Result<AttemptResult> run_attempt(const AttemptOrder& order) = 0;
  // Probes the disk as it is now, in every view the world offers.
  virtual void probe() = 0;
};

}  // namespace firedrill

// Recovery: the life of one rank in one attempt, from the rendezvous to the last step. Find, restore, train, publish.
//
// With checkpoint.mode async a save is dispatched to a second task (publisher.h), and the next one and the job's end
// wait for it. All ranks of a publish learn of its failure in the same exchange, so they count failures alike whenever
// each of them looks: at the latest at its next step.
//
// Preemption: a rank that is asked to leave says so in the store before it begins a step; behind
// each step every rank looks. No rank completes a step that another has not begun, so what was said before the step is
// seen by all, and what is said later names a later step: all agree on one step without a message more. They save it
// and leave. Only whole steps are ever saved, so nothing of an accumulation window is lost or counted twice.
//
// Never starts from step 0 in silence: a fresh start needs an agreed Find that saw nothing, and a floor of -1.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "engine/ckpt/protocol.h"
#include "engine/data/corpus_input.h"
#include "engine/data/sampler.h"
#include "engine/job/layout.h"
#include "engine/model/transformer.h"
#include "engine/seam/parts.h"
#include "engine/train/publisher.h"
#include "engine/train/rules.h"
#include "engine/train/shape.h"

namespace firedrill {

// Publishes beside training, with parts of its own. Both must outlive every task of the rank.
struct SecondTask {
  AsyncPublisher& publisher;
  Parts& parts;
};

// What an attempt is told; the same on all ranks. References outlive the attempt.
struct AttemptContext {
  const Job& job;
  const Layout& layout;
  const Model& model;
  const Sampler& sampler;
  const Value& text;  // the training part of the corpus
  const RunIdentity& identity;
  Protocol& protocol;  // how checkpoints are published and found; this rank's own object
  int attempt = 1;
  std::int64_t floor = -1;  // highest acknowledged step; -1: none
  // Whether the rank was asked to come to an orderly end (SIGTERM): it will be killed when its grace time is over.
  std::function<bool()> stop_requested = {};  // absent: it never is
  int rendezvous = 0;  // the number under which the ranks meet, by their hosts; 0: that of the attempt
  const TrainingRules& rules = right_rules();
  DataSource source = {};                 // through which `text` is read in steps
  std::optional<SecondTask> second = {};  // needed with checkpoint.mode async
  const LayoutShape* shape = nullptr;     // of the layout; none: it is made anew
};

enum class RankResult : std::uint8_t {
  finished,  // the job's last step and its last publish are completed
  left,      // all ranks have agreed to leave, and have saved
};

// Returns at the end of the job or of an agreed preemption, or with the error that ended the rank.
Result<RankResult> run_rank(const AttemptContext& context, Parts& parts);

}  // namespace firedrill

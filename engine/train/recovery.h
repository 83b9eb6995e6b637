// Recovery: the life of one rank in one attempt, from the rendezvous to the last step. Find, restore, train, publish.
//
// Never starts from step 0 in silence: a fresh start needs an agreed Find that saw nothing, and a floor of -1.
#pragma once

#include "engine/ckpt/protocol.h"
#include "engine/data/sampler.h"
#include "engine/job/layout.h"
#include "engine/model/transformer.h"
#include "engine/seam/parts.h"

namespace firedrill {

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
};

// Returns when the rank has completed the job's last step and its last publish, or with the error that ended it.
Status run_rank(const AttemptContext& context, Parts& parts);

}  // namespace firedrill

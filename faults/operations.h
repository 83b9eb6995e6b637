// Operations: which seam calls a rank makes at all in a phase. One table of what the engine does, so that a fault at a
// call that no run ever makes is refused before anything runs.
//
// The table is generous: it holds what can happen under some faults and in some layout. Pure.
#pragma once

#include <bitset>
#include <string>

#include "engine/job/job.h"
#include "engine/seam/position.h"
#include "faults/spec.h"

namespace firedrill {

// The file operations one by one, then the other seams as in SeamOp (whose `file` stays unset).
using Operations = std::bitset<file_op_count + seam_op_count>;

Operations only(FileOp op);
Operations only(SeamOp op);                          // of `file`: all file operations
std::string names_of(const Operations& operations);  // "create, write or store"

// What the coordinator (rank 0) does in the phase, or what each other rank does. The first attempt finds nothing.
Operations operations_in(Phase phase, bool coordinator, bool first_attempt, CatalogKind catalog);

// What the fault's rank does where `at` can match, in any of its phases, whatever the operation.
Operations operations_at(const Where& at, const Job& job);
// What faults of the kind can be about.
Operations operations_of_kind(FaultKind kind);
// What the fault is about, wherever it is; none if its kind and `at` contradict each other.
Operations operations_of(const FaultSpec& fault);

// Phases that belong to a publish.
bool saves(Phase phase);
// Phases that are over when an attempt computes its first step.
bool before_the_first_step(Phase phase);
bool save_due(std::int64_t step, const Job& job);

}  // namespace firedrill

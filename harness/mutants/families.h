// Families of mutants, each with what its mutants need of a plan; the table of all is in mutants.cpp.
#pragma once

#include <vector>

#include "harness/mutants/mutants.h"

namespace firedrill {

std::vector<Mutant> mutants_of_liveness();  // who looks after ranks that are stopped, stuck or gone, and how
std::vector<Mutant> mutants_of_data();      // which samples are drawn, and what becomes of bad ones
std::vector<Mutant> mutants_of_resume();    // what of the state comes back, and from which checkpoint
std::vector<Mutant> mutants_of_checks();    // the engine's own checks of what it computes and receives

}  // namespace firedrill

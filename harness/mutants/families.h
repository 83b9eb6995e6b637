// Families of mutants, each with what its mutants need of a plan; the table of all is in mutants.cpp.
#pragma once

#include <vector>

#include "harness/mutants/mutants.h"

namespace firedrill {

std::vector<Mutant> mutants_of_liveness();  // who looks after ranks that are stopped, stuck or gone, and how
std::vector<Mutant> mutants_of_checks();    // the engine's own checks of what it computes and receives

}  // namespace firedrill

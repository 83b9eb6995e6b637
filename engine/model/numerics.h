// Numerics: the pins that make LibTorch give the same bits on every CPU, and the key that says whether two results may
// be compared at all.
//
// The pins are ATEN_CPU_CAPABILITY=default, MKL_CBWR=COMPATIBLE, oneDNN off and one thread. LibTorch and MKL read the
// two variables once, at their first work, so pin first thing in main, before any tensor and before any thread.
#pragma once

#include <string>

#include "engine/base/digest.h"
#include "engine/job/job.h"
#include "engine/seam/compute.h"

namespace firedrill {

// Sets the pins for the process and ends recording for autograd on the calling thread. May be called again.
void pin_numerics();

// For jobs with `numerics: native`: the CPU's own code paths, still one thread and no autograd. Must be first, too.
void use_native_numerics();

void set_numerics(Numerics numerics);

// The CPU capability that LibTorch really uses ("DEFAULT", "AVX2", "AVX512").
std::string cpu_capability();

// Digest over the results of every operation that the segments and the optimizer use, on fixed pseudo-random inputs of
// several shapes. Costs some milliseconds; ask once per process.
Digest numerics_probe();
// The same of what runs the segments elsewhere.
Digest numerics_probe(Compute& compute);

// "libtorch-2.11.0/cpu/<probe digest>", with "/native" behind it in native mode. Runs the probe.
std::string numerics_key(Numerics numerics);

}  // namespace firedrill

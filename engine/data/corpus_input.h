// CorpusInput: rows from the training text in memory, by gather_kernel. SampleDigests: what each sample must be, so
// that a row that was read wrong is noticed before anything is computed from it. The table is made from a text whose
// own digest was compared with the run's, and has nothing to do with how rows are read later.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/data/sampler.h"
#include "engine/seam/input.h"

namespace firedrill {

class CorpusInput final : public Input {
 public:
  CorpusInput(Compute& compute, Value text, std::int64_t sequence)
      : compute_(compute), text_(std::move(text)), sequence_(sequence) {}
  Result<Value> rows(const Value& samples) override {
    return run_kernel(compute_, gather_kernel, GatherScalars{.sequence = sequence_}, {text_, samples});
  }

 private:
  Compute& compute_;
  Value text_;
  std::int64_t sequence_;
};

class SampleDigests {
 public:
  // 8 bytes for each sample. A text of another size than the sampler's fails a check.
  SampleDigests(const Value& text, std::int64_t sequence);

  // What Input::rows gave for `samples`. Errors: invalid_input (fewer rows than samples: the input ended early),
  // corrupted (another row than the corpus has), each naming the sample.
  Status verify(const Value& samples, const Value& rows) const;

 private:
  std::int64_t sequence_;
  std::vector<std::uint64_t> digests_;
};

// Where a trainer's rows come from.
struct DataSource {
  Input* input = nullptr;                  // none: the text in memory, without a seam
  const SampleDigests* digests = nullptr;  // none: what comes is not verified
};

}  // namespace firedrill

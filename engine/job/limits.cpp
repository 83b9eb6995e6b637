#include "engine/job/limits.h"

#include <fmt/format.h>

namespace firedrill {

std::vector<std::string> cannot_run(const Job& job) {
  const ModelSpec& model = job.model;
  std::vector<std::string> reasons;
  if (model.vocabulary != 256) {
    reasons.push_back(fmt::format("model.vocabulary is {}: only bytes (256) is supported", model.vocabulary));
  }
  if (model.kv_heads != 0 && model.kv_heads != model.heads) {
    reasons.push_back(fmt::format("model.kv_heads is {}: only as many as model.heads ({}) are supported yet",
                                  model.kv_heads, model.heads));
  }
  if (job.numerics != Numerics::pinned) reasons.emplace_back("numerics is native: only pinned is supported yet");
  return reasons;
}

}  // namespace firedrill

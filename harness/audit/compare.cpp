// Comparing audited states, and saying what was found.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "harness/audit/audit.h"

namespace firedrill {
namespace {

std::string kind_of(const AuditedTensor& tensor) {
  return fmt::format("{} [{}]", tensor.dtype, fmt::join(tensor.shape, ", "));
}

// The newest intact checkpoint of each step.
std::map<std::int64_t, const AuditedCheckpoint*> by_step(const AuditReport& report) {
  std::map<std::int64_t, const AuditedCheckpoint*> found;
  for (const AuditedCheckpoint& checkpoint : report.checkpoints) {
    if (checkpoint.stands() && checkpoint.intact()) found[checkpoint.id.step] = &checkpoint;
  }
  return found;
}

std::string standing(const AuditedCheckpoint& checkpoint, const std::string& unknown_because) {
  if (!unknown_because.empty()) return "unknown: " + unknown_because;
  if (checkpoint.retired()) return "retired";
  if (checkpoint.lost_by_catalog) return "LOST";
  std::string words = !checkpoint.committed ? "not committed" : checkpoint.intact() ? "intact" : "DAMAGED";
  if (checkpoint.validated) words += ", validated";
  if (checkpoint.committed && !checkpoint.visible) words += ", not visible";
  if (checkpoint.rejected) words += ", rejected";
  if (checkpoint.tombstone) words += ", being deleted";
  return words;
}

}  // namespace

std::vector<TensorDifference> compare(const CheckpointContents& a, const CheckpointContents& b) {
  std::vector<TensorDifference> differences;
  auto left = a.tensors.begin();
  auto right = b.tensors.begin();
  while (left != a.tensors.end() || right != b.tensors.end()) {
    const bool left_only = right == b.tensors.end() || (left != a.tensors.end() && left->name < right->name);
    const bool right_only = left == a.tensors.end() || (right != b.tensors.end() && right->name < left->name);
    if (left_only) {
      differences.push_back({left++->name, "only in the first"});
    } else if (right_only) {
      differences.push_back({right++->name, "only in the second"});
    } else {
      if (kind_of(*left) != kind_of(*right)) {
        differences.push_back({left->name, fmt::format("{} and {}", kind_of(*left), kind_of(*right))});
      } else if (left->digest != right->digest) {
        differences.push_back({left->name, fmt::format("digest {} and {}", left->digest.hex(), right->digest.hex())});
      }
      ++left;
      ++right;
    }
  }
  return differences;
}

DirectoryComparison compare(const AuditReport& a, const AuditReport& b) {
  DirectoryComparison comparison;
  const auto steps_a = by_step(a);
  const auto steps_b = by_step(b);
  for (const auto& [step, checkpoint] : steps_a) {
    const auto other = steps_b.find(step);
    if (other == steps_b.end()) {
      comparison.only_in_a.push_back(step);
      continue;
    }
    comparison.steps.push_back({.step = step,
                                .a = checkpoint->id,
                                .b = other->second->id,
                                .differences = compare(*checkpoint->contents, *other->second->contents)});
  }
  for (const auto& [step, checkpoint] : steps_b) {
    if (!steps_a.contains(step)) comparison.only_in_b.push_back(step);
  }
  return comparison;
}

bool DirectoryComparison::equal() const {
  return !steps.empty() &&
         std::all_of(steps.begin(), steps.end(), [](const StepComparison& step) { return step.differences.empty(); });
}

std::string in_words(const AuditReport& report, bool tensors) {
  std::string text;
  for (const AuditedCheckpoint& checkpoint : report.checkpoints) {
    const CheckpointContents& contents = *checkpoint.contents;
    text += fmt::format("{}  {}", to_string(checkpoint.id), standing(checkpoint, report.unknown_because));
    if (checkpoint.committed && contents.shards > 0) {
      text += fmt::format("  {} tensors in {} shards of {} ranks, {} bytes, {}, run {}, job {}",
                          contents.tensors.size(), contents.shards, contents.world, contents.bytes, contents.layout,
                          contents.provenance.run, contents.provenance.job.hex().substr(0, 8));
    }
    text += '\n';
    if (checkpoint.committed || checkpoint.lost_by_catalog) {
      for (const std::string& problem : contents.problems) text += fmt::format("    {}\n", problem);
    }
    if (!tensors || !checkpoint.intact()) continue;
    for (const AuditedTensor& tensor : contents.tensors) {
      text += fmt::format("    {}  {}  {}\n", tensor.digest.hex(), tensor.name, kind_of(tensor));
    }
  }
  for (const std::string& problem : report.problems) text += fmt::format("{}\n", problem);
  if (text.empty()) text = "no checkpoints\n";
  return text;
}

std::string in_words(const DirectoryComparison& comparison) {
  std::string text;
  for (const StepComparison& step : comparison.steps) {
    text += fmt::format("step {}: {} and {} ", step.step, to_string(step.a), to_string(step.b));
    text += step.differences.empty() ? std::string("are equal\n")
                                     : fmt::format("differ in {} tensors\n", step.differences.size());
    for (const TensorDifference& difference : step.differences) {
      text += fmt::format("    {}: {}\n", difference.tensor, difference.how);
    }
  }
  for (const std::int64_t step : comparison.only_in_a) text += fmt::format("step {}: only in the first\n", step);
  for (const std::int64_t step : comparison.only_in_b) text += fmt::format("step {}: only in the second\n", step);
  if (comparison.steps.empty()) text += "no step is whole in both\n";
  return text;
}

}  // namespace firedrill

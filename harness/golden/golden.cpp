#include "harness/golden/golden.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/golden/record.h"

namespace firedrill {

std::string to_string(const GoldenKey& key) {
  return fmt::format("job {}, corpus {}, numerics {}", key.job.hex().substr(0, 8), key.corpus.hex().substr(0, 8),
                     key.numerics);
}

Digest digest_of_tensors(const std::vector<std::string>& names, const std::vector<Digest>& digests) {
  FD_CHECK(names.size() == digests.size(), "{} names for {} digests", names.size(), digests.size());
  std::vector<std::uint64_t> words;
  words.reserve(4 * names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Digest name = digest_of(names[i]);
    words.insert(words.end(), {name.high, name.low, digests[i].high, digests[i].low});
  }
  return digest_of(std::span<const std::uint64_t>(words));
}

std::optional<GoldenDifference> difference(const Golden& recorded, const Golden& computed) {
  const std::size_t steps = std::min(recorded.steps.size(), computed.steps.size());
  for (std::size_t step = 0; step < steps; ++step) {
    const GoldenStep& a = recorded.steps[step];
    const GoldenStep& b = computed.steps[step];
    const auto number = static_cast<std::int64_t>(step) + 1;
    if (a.samples != b.samples) return GoldenDifference{.step = number, .tensor = "", .how = "other samples"};
    if (a.state == b.state) continue;
    for (std::size_t i = 0; i < recorded.tensors.size() && i < computed.tensors.size(); ++i) {
      if (recorded.tensors[i] != computed.tensors[i]) {
        return GoldenDifference{.step = number,
                                .tensor = recorded.tensors[i],
                                .how = fmt::format("the computed state has {} in its place", computed.tensors[i])};
      }
      if (a.tensors[i] != b.tensors[i]) {
        return GoldenDifference{.step = number,
                                .tensor = recorded.tensors[i],
                                .how = fmt::format("recorded {}, computed {}", a.tensors[i].hex(), b.tensors[i].hex())};
      }
    }
    return GoldenDifference{.step = number, .tensor = "", .how = "another number of tensors"};
  }
  if (recorded.steps.size() != computed.steps.size()) {
    return GoldenDifference{
        .step = static_cast<std::int64_t>(steps) + 1,
        .tensor = "",
        .how = fmt::format("recorded {} steps, computed {}", recorded.steps.size(), computed.steps.size())};
  }
  return std::nullopt;
}

std::string golden_file_name(const std::string& job, const GoldenKey& key) {
  const Digest digest = DigestBuilder().add(key.job).add(key.corpus).add(key.numerics).finish();
  return fmt::format("{}-{}.json", job, digest.hex().substr(0, 8));
}

void append_golden(const Golden& golden, History& history) {
  Tables& tables = history.tables();
  const NameId key = tables.names.intern(to_string(golden.key));
  std::vector<NamedDigest> tensors;
  for (std::size_t i = 0; i < golden.steps.size(); ++i) {
    const GoldenStep& step = golden.steps[i];
    const auto number = static_cast<std::int64_t>(i) + 1;
    // With runs it is another description of the same state, and so has a digest of its own.
    const Digest state = golden.runs.empty() ? step.state : DigestBuilder().add(step.state).add("runs").finish();
    if (!tables.states.knows(state)) {
      tensors.clear();
      for (std::size_t t = 0; t < golden.tensors.size(); ++t)
        tensors.push_back({.name = golden.tensors[t], .digest = step.tensors[t]});
      for (std::size_t r = 0; r < golden.runs.size(); ++r)
        tensors.push_back({.name = golden.runs[r], .digest = step.runs[r]});
      tables.states.describe(state, tensors);
    }
    history.append({.kind = EventKind::golden, .step = number, .name = key, .digest = state});
    for (const GoldenSample& sample : step.samples)
      history.append(
          {.kind = EventKind::golden_sample, .step = number, .a = sample.epoch, .b = sample.sample, .c = sample.lane});
  }
}

namespace {

// Tensors of a step by name, united over the ranks that reported it last.
std::map<std::string, Digest> tensors_at(const History& history, std::int64_t step, std::int32_t attempt) {
  std::map<std::string, Digest> tensors;
  const Tables& tables = history.tables();
  for (const std::uint32_t position : history.of(EventKind::step_done)) {
    const Event& event = history[position];
    if (event.step != step || event.attempt != attempt) continue;
    const StateId state = tables.states.find(event.digest);
    if (state == no_state) continue;
    for (const StateTensor& tensor : tables.states.tensors(state))
      tensors[std::string(tables.names.text(tensor.name))] = tensor.digest;
  }
  return tensors;
}

// Tensors that are held in runs only become whole where the golden says that all of their runs are as they should be.
void join_runs(const History& history, std::int64_t step, std::map<std::string, Digest>& tensors) {
  const Tables& tables = history.tables();
  std::map<std::string, Digest> golden;
  for (const std::uint32_t position : history.of(EventKind::golden)) {
    const StateId state = tables.states.find(history[position].digest);
    if (history[position].step != step || state == no_state) continue;
    for (const StateTensor& tensor : tables.states.tensors(state))
      golden[std::string(tables.names.text(tensor.name))] = tensor.digest;
  }
  std::map<std::string, bool> as_golden;  // by tensor: all its runs are there and right
  for (const auto& [name, digest] : golden) {
    if (!is_run(name)) continue;
    const auto held = tensors.find(name);
    const bool right = held != tensors.end() && held->second == digest;
    const auto [place, fresh] = as_golden.try_emplace(std::string(tensor_of_run(name)), right);
    if (!fresh) place->second = place->second && right;
  }
  for (const auto& [tensor, right] : as_golden) {
    if (right && golden.contains(tensor)) tensors.try_emplace(tensor, golden.at(tensor));
  }
  std::erase_if(tensors, [&](const auto& held) {
    return is_run(held.first) && tensors.contains(std::string(tensor_of_run(held.first)));
  });
}

void split_map(const std::map<std::string, Digest>& tensors, std::vector<std::string>& names,
               std::vector<Digest>& digests) {
  for (const auto& [name, digest] : tensors) {
    names.push_back(name);
    digests.push_back(digest);
  }
}

}  // namespace

std::optional<Digest> final_state_of(const History& history, std::int64_t last_step) {
  std::int32_t attempt = 0;
  for (const std::uint32_t position : history.of(EventKind::step_done)) {
    if (history[position].step == last_step) attempt = std::max(attempt, history[position].attempt);
  }
  if (attempt == 0) return std::nullopt;
  std::vector<std::string> names;
  std::vector<Digest> digests;
  std::map<std::string, Digest> tensors = tensors_at(history, last_step, attempt);
  join_runs(history, last_step, tensors);
  split_map(tensors, names, digests);
  return digest_of_tensors(names, digests);
}

bool is_run(std::string_view name) { return name.ends_with(']'); }

std::string_view tensor_of_run(std::string_view name) { return name.substr(0, name.rfind('[')); }

Status add_runs(const History& history, Golden& golden) {
  for (std::size_t i = 0; i < golden.steps.size(); ++i) {
    GoldenStep& step = golden.steps[i];
    for (const auto& [name, digest] : tensors_at(history, static_cast<std::int64_t>(i) + 1, 1)) {
      if (is_run(name)) {
        if (i == 0) golden.runs.push_back(name);
        step.runs.push_back(digest);
        continue;
      }
      const auto known = std::lower_bound(golden.tensors.begin(), golden.tensors.end(), name);
      const auto at = static_cast<std::size_t>(known - golden.tensors.begin());
      if (known == golden.tensors.end() || *known != name || step.tensors[at] != digest) {
        return Error{
            .code = Code::internal,
            .message = fmt::format("with its state in shards {} differs in {} at step {}", golden.job, name, i + 1)};
      }
    }
    if (step.runs.size() != golden.runs.size()) {
      return Error{.code = Code::internal,
                   .message = fmt::format("{} has {} runs of tensors at step {}, not {}", golden.job, step.runs.size(),
                                          i + 1, golden.runs.size())};
    }
  }
  return {};
}

Result<Golden> golden_from(const History& history, const Job& job, const GoldenKey& key) {
  Golden golden{.job = job.name, .key = key, .tensors = {}, .steps = {}};
  for (std::int64_t step = 1; step <= job.steps; ++step) {
    std::vector<std::string> names;
    GoldenStep at;
    split_map(tensors_at(history, step, 1), names, at.tensors);
    if (names.empty() || (step > 1 && names != golden.tensors)) {
      return Error{
          .code = Code::internal,
          .message = fmt::format("the undisturbed run of {} has {} tensors at step {}", job.name, names.size(), step)};
    }
    golden.tensors = std::move(names);
    at.state = digest_of_tensors(golden.tensors, at.tensors);
    golden.steps.push_back(std::move(at));
  }
  for (const std::uint32_t position : history.of(EventKind::sample)) {
    const Event& event = history[position];
    golden.steps[static_cast<std::size_t>(event.step - 1)].samples.push_back(
        {.epoch = event.a, .sample = event.b, .lane = event.c});
  }
  return golden;
}

}  // namespace firedrill

#include "harness/history/probes.h"

#include <fmt/format.h>

#include <array>

#include "engine/base/check.h"
#include "engine/base/text.h"

namespace firedrill {
namespace {

constexpr std::array<std::string_view, probe_view_count> view_names = {"processes_die", "power_fails"};
constexpr std::array<std::string_view, 3> outcome_names = {"nothing", "found", "error"};

template <class Enum, std::size_t Count>
std::optional<Enum> from_name(const std::array<std::string_view, Count>& names, std::string_view name) {
  for (std::size_t i = 0; i < Count; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

void add_id(std::vector<std::uint64_t>& words, const CheckpointId& id) {
  for (const std::int64_t part : {id.step, id.attempt, id.trial}) words.push_back(static_cast<std::uint64_t>(part));
}

void add_digest(std::vector<std::uint64_t>& words, const Digest& digest) {
  words.insert(words.end(), {digest.high, digest.low});
}

// Of every field: results with the same digest are one.
Digest digest_of_probe(const ProbeResult& result, const StateTable& states) {
  std::vector<std::uint64_t> words;
  words.push_back(static_cast<std::uint64_t>(result.view));
  words.push_back(static_cast<std::uint64_t>(result.outcome));
  add_digest(words, digest_of(std::string_view(result.error)));
  add_id(words, result.found);
  words.push_back(result.complete);
  add_digest(words, digest_of(std::string_view(result.reason)));
  words.push_back(result.provenance_coherent);
  add_digest(words, result.state == no_state ? Digest{} : states.digest(result.state));
  for (const SeenCheckpoint& seen : result.seen) {
    add_id(words, seen.id);
    words.push_back(seen.validated * 2U + seen.intact);
  }
  return digest_of(std::span<const std::uint64_t>(words));
}

}  // namespace

std::string_view to_string(ProbeView view) { return view_names[static_cast<std::size_t>(view)]; }
std::string_view to_string(ProbeOutcome outcome) { return outcome_names[static_cast<std::size_t>(outcome)]; }
std::optional<ProbeView> probe_view_from(std::string_view name) { return from_name<ProbeView>(view_names, name); }
std::optional<ProbeOutcome> probe_outcome_from(std::string_view name) {
  return from_name<ProbeOutcome>(outcome_names, name);
}

std::int64_t ProbeTable::add(ProbeResult result) {
  const Digest digest = digest_of_probe(result, states_);
  const auto [place, is_new] = numbers_.try_emplace(digest, size());
  if (is_new) {
    digests_.push_back(digest);
    results_.push_back(std::move(result));
  }
  return place->second;
}

const ProbeResult& ProbeTable::operator[](std::int64_t index) const {
  FD_CHECK(index >= 0 && index < size(), "probe result {} of {}", index, size());
  return results_[static_cast<std::size_t>(index)];
}

const Digest& ProbeTable::digest(std::int64_t index) const {
  FD_CHECK(index >= 0 && index < size(), "probe result {} of {}", index, size());
  return digests_[static_cast<std::size_t>(index)];
}

}  // namespace firedrill

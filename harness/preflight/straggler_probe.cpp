// How fast this rank computes, copies and reads. A look is long enough for a quota of CPU time to bite.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "engine/base/digest.h"
#include "harness/preflight/probes.h"
#include "harness/preflight/straggler.h"

namespace firedrill::preflight {
namespace {

using SteadyTime = std::chrono::steady_clock;
constexpr std::chrono::milliseconds look{200};

class StragglerProbe {
 public:
  explicit StragglerProbe(const Probe& probe) : probe_(probe), from_(copied, 1.0F), to_(copied), text_(read_at_once) {
    std::filesystem::path corpus = probe.work.at("corpus").get<std::string>();
    if (std::filesystem::is_directory(corpus)) {
      for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
        if (entry.is_regular_file()) corpus = entry.path();
      }
    }
    file_ = corpus.string();
  }

  StragglerMeasured run();

 private:
  static constexpr std::size_t copied = 1 << 20;        // floats; beyond the caches of a core
  static constexpr std::size_t read_at_once = 1 << 16;  // bytes
  static constexpr std::size_t side = 64;               // of a matrix

  double seconds_of(WorkOfRank work);
  void one_unit(WorkOfRank work);
  void multiply();
  void read_text();
  // Of the rank whose turn it is; all ranks learn of it.
  double measure(WorkOfRank work, int rank);

  const Probe& probe_;
  std::vector<float> from_;
  std::vector<float> to_;
  std::vector<char> text_;
  std::string file_;
  std::array<float, side * side> matrix_{};
  std::array<float, side * side> product_{};
  std::uint64_t sink_ = 0;  // what was read, so that nobody leaves the reading out
};

void StragglerProbe::multiply() {
  matrix_[sink_ % matrix_.size()] += 1.0F;
  for (std::size_t row = 0; row < side; ++row) {
    for (std::size_t column = 0; column < side; ++column) {
      float sum = 0;
      for (std::size_t k = 0; k < side; ++k) sum += matrix_[row * side + k] * matrix_[k * side + column];
      product_[row * side + column] = sum;
    }
  }
  sink_ += static_cast<std::uint64_t>(product_[0]);
}

void StragglerProbe::read_text() {
  std::ifstream in(file_, std::ios::binary);
  if (!in) {
    throw ProbeFailed({.why = fmt::format("cannot read {}", file_),
                       .needed = "the job's corpus, readable for every rank",
                       .remedy = "look whether data.corpus of the job file is there on this node"});
  }
  in.read(text_.data(), static_cast<std::streamsize>(text_.size()));
  sink_ += digest_of(std::string_view(text_.data(), static_cast<std::size_t>(in.gcount()))).low;
}

void StragglerProbe::one_unit(WorkOfRank work) {
  switch (work) {
    case WorkOfRank::compute: multiply(); break;
    case WorkOfRank::memory:
      std::memcpy(to_.data(), from_.data(), copied * sizeof(float));
      from_[sink_ % copied] = to_[(sink_ + 1) % copied];
      ++sink_;
      break;
    case WorkOfRank::input: read_text(); break;
  }
}

double StragglerProbe::seconds_of(WorkOfRank work) {
  const auto began = SteadyTime::now();
  std::int64_t units = 0;
  auto now = began;
  for (; now - began < look; now = SteadyTime::now()) {
    one_unit(work);
    ++units;
  }
  return std::chrono::duration<double>(now - began).count() / static_cast<double>(units);
}

double StragglerProbe::measure(WorkOfRank work, int rank) {
  double mine = 0;
  if (rank == probe_.rank) {
    probe_.line.doing(fmt::format("a look at its speed of {}", to_string(work)));
    mine = seconds_of(work);
  }
  return probe_.line.meet(mine)[static_cast<std::size_t>(rank)].get<double>();
}

StragglerMeasured StragglerProbe::run() {
  StragglerMeasured measured;
  for (int round = 0; round < straggler_rounds; ++round) {
    for (const WorkOfRank work : works_of_rank) {
      std::vector<double> times;
      for (int rank = 0; rank < probe_.ranks; ++rank) times.push_back(measure(work, rank));
      measured.rounds[static_cast<std::size_t>(work)].push_back(std::move(times));
    }
  }
  for (const WorkOfRank work : works_of_rank) {
    for (Suspicion& suspicion : suspects(work, measured.rounds[static_cast<std::size_t>(work)])) {
      // Blamed already: its node is slow at more than one thing.
      const bool known = std::ranges::any_of(measured.suspicions, [&](const Suspicion& other) {
        return other.rank == suspicion.rank && confirmed(other);
      });
      if (known) continue;
      // A look that clears it ends the matter.
      for (int i = 0; i < confirmations(probe_.ranks) && (i == 0 || confirmed(suspicion)); ++i) {
        PairOfTimes pair;
        if (i % 2 == 0) pair.suspect = measure(work, suspicion.rank);
        pair.reference = measure(work, suspicion.reference);
        if (i % 2 != 0) pair.suspect = measure(work, suspicion.rank);
        suspicion.again.push_back(pair);
      }
      measured.suspicions.push_back(std::move(suspicion));
    }
  }
  return measured;
}

}  // namespace

Json probe_straggler(const Probe& probe) { return StragglerProbe(probe).run(); }

}  // namespace firedrill::preflight

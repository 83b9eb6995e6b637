// The options that every verb takes. One that means nothing to a verb is refused there: see Verb.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace firedrill {

struct CommonOptions {
  std::optional<std::uint64_t> seed;
  int jobs = 1;
  std::string mutant;
  std::vector<std::string> set;
  std::string filter;
  std::string json;  // "-": standard output
  std::string junit;
  std::filesystem::path out;
  bool quiet = false;
};

// `options` must outlive the parsing.
void add_common(CLI::App& app, CommonOptions& options);
// What is wrong with them together: an --out that is not fresh, a mutant that does not exist.
std::vector<std::string> mistakes_in(const CommonOptions& options);

}  // namespace firedrill

#include "harness/run/golden_cache.h"

#include <fmt/format.h>

#include <cstdint>

namespace firedrill {

Result<Golden> kept_or_recorded(const std::filesystem::path& directory, const Job& job, const Model& model,
                                const Corpus& corpus, const GoldenKey& key, std::string& note) {
  const auto file = directory / golden_file_name(job.name, key);
  if (!directory.empty()) {
    Result<Golden> kept = read_golden(file);
    if (kept && kept->key == key) {
      note = fmt::format("kept in {}", std::filesystem::proximate(file).string());
      return kept;
    }
  }
  FD_TRY(Golden golden, record_golden(job, model, corpus, key.numerics));
  note = "computed now: no recorded golden has this key";
  if (directory.empty()) return golden;
  // Sessions of other threads may do the same: each writes a file of its own, and the last name wins.
  auto own = file;
  own += fmt::format(".{:x}", reinterpret_cast<std::uintptr_t>(&job));
  FD_TRY_VOID(write_golden(golden, own));
  std::error_code failed;
  std::filesystem::rename(own, file, failed);
  if (failed) return Error{.code = Code::io_error, .message = fmt::format("{}: {}", file.string(), failed.message())};
  return golden;
}

}  // namespace firedrill

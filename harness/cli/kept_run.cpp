#include "harness/cli/kept_run.h"

#include <fmt/format.h>

#include "harness/history/lines.h"

namespace firedrill {

namespace fs = std::filesystem;

Result<fs::file_type> kind_of(const fs::path& path) {
  std::error_code failed;
  const fs::file_type type = fs::status(path, failed).type();
  if (type == fs::file_type::regular || type == fs::file_type::directory || type == fs::file_type::not_found) {
    return type;
  }
  if (type == fs::file_type::none) {
    return Error{.code = Code::invalid_input,
                 .message = fmt::format("cannot look at {}: {}", path.string(), failed.message()),
                 .hint = "give a folder that `--out` kept and that may be entered"};
  }
  return Error{.code = Code::invalid_input,
               .message = fmt::format("{} is neither a file nor a directory, and is not read", path.string()),
               .hint = "put what it gives into a file"};
}

Status may_be_read(const fs::path& file) {
  FD_TRY(const fs::file_type kind, kind_of(file));
  if (kind != fs::file_type::directory) return {};
  return Error{.code = Code::invalid_input,
               .message = fmt::format("{} is a directory, where a file must be", file.string()),
               .hint = "give a folder as `--out` kept it"};
}

Result<std::unique_ptr<KeptRun>> open_kept_run(const fs::path& folder) {
  const fs::path history = folder / "history.jsonl";
  FD_TRY_VOID(may_be_read(history));
  FD_TRY(const fs::file_type kind, kind_of(history));
  if (kind == fs::file_type::not_found) return std::unique_ptr<KeptRun>();
  auto kept = std::make_unique<KeptRun>();
  FD_TRY_VOID(may_be_read(folder / "plan.json"));
  FD_TRY(kept->plan, read_plan(folder / "plan.json"));
  FD_TRY_VOID(load_history(history.string(), kept->history));
  return kept;
}

}  // namespace firedrill

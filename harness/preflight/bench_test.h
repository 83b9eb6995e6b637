// For the tests of this folder: a directory that goes with the test, and a check with real ranks in it.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mount.h>

#include <filesystem>
#include <string>

#include "engine/base/check.h"
#include "engine/os/zygote.h"
#include "harness/preflight/check.h"
#include "harness/preflight/troubles_test.h"
#include "harness/scenario/scenario.h"

namespace firedrill::preflight {

namespace fs = std::filesystem;

// A directory that goes with the test.
class Directory {
 public:
  Directory() {
    std::string pattern = (fs::temp_directory_path() / "firedrill-preflight-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Directory() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  const fs::path& path() const { return path_; }
  // False: it takes root.
  bool mount_tmpfs(const char* options) {
    mounted_ = ::mount("tmpfs", path_.c_str(), "tmpfs", 0, options) == 0;
    return mounted_;
  }
  bool make_read_only() { return ::mount("tmpfs", path_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) == 0; }

 private:
  fs::path path_;
  bool mounted_ = false;
};

inline Options options_for(const fs::path& directory, int ranks = 4) {
  Loaded<Job> job = load_job("scenarios/jobs/nano.yaml");
  FD_CHECK(static_cast<bool>(job), "nano cannot be read");
  return {.job = *job, .layout = {.dp = ranks}, .directory = directory};
}

inline CheckResult run(CheckResult (*check)(Bench&), const Options& options, const char* trouble = "") {
  ::setenv(trouble_variable, trouble, 1);
  Result<std::unique_ptr<ZygoteLauncher>> launcher = ZygoteLauncher::start_zygote();
  FD_CHECK(launcher.ok(), "{}", describe(launcher.error()));
  Team team(**launcher);
  Bench bench{.options = options, .team = team, .storage_answers = true};
  return check(bench);
}

// The first that is not a go; with all that a finding must say.
inline Finding worst(const CheckResult& result) {
  for (const Finding& finding : result.findings) {
    if (finding.standing != result.standing()) continue;
    EXPECT_FALSE(finding.measured.empty());
    EXPECT_FALSE(finding.needed.empty());
    EXPECT_FALSE(finding.where.empty());
    EXPECT_FALSE(finding.remedy.empty());
    return finding;
  }
  ADD_FAILURE() << "no finding";
  return {};
}

}  // namespace firedrill::preflight

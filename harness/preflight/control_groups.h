// ControlGroups: what the control groups (cgroups) of this process leave to it, by version 1 and 2. A limit of any
// group around its own holds, too, up to the root; in a container the path that the system gives may not be there, and
// what is there of it is looked at.
//
// Files: cpu.max, memory.max, memory.current (docs.kernel.org/admin-guide/cgroup-v2), and their older names. A file
// that is missing or says "max" is no limit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace firedrill::preflight {

class ControlGroups {
 public:
  explicit ControlGroups(const std::filesystem::path& root = "/sys/fs/cgroup",
                         const std::filesystem::path& membership = "/proc/self/cgroup");

  // At most `cores`.
  double cores_within(double cores) const;
  // At most `bytes`. What a group caches of files and can drop is not taken for used.
  std::int64_t memory_within(std::int64_t bytes) const;

 private:
  // From this process's own up to the root.
  std::vector<std::filesystem::path> cpu_, memory_, unified_;
};

}  // namespace firedrill::preflight

// Fuzz target: a whole checkpoint root, damaged in several places, under find and restore. The input is a list of
// damages to the frozen root of golden/format-1. Without a digest made good again, what is restored must be what was
// saved; with one, anything but a crash, a hang or a path that leads out of the root will do.
#include <optional>
#include <string>
#include <vector>

#include "engine/base/check.h"
#include "engine/ckpt/frozen_root.h"
#include "engine/ckpt/fuzz_input.h"
#include "engine/ckpt/test_run.h"

namespace firedrill {
namespace {

bool leads_out(std::string_view path) {
  return path.starts_with('/') || path == ".." || path.starts_with("../") ||
         path.find("/../") != std::string_view::npos || path.ends_with("/..");
}

std::vector<std::string> files_of(const TestDisk& disk) {
  std::vector<std::string> files;
  for (const auto& [path, inode] : disk.now) {
    if (!inode->directory) files.push_back(path);
  }
  return files;
}

std::string& pick(TestDisk& disk, fuzz::Input& input, std::string& path) {
  const std::vector<std::string> files = files_of(disk);
  path = files[input.byte() % files.size()];
  return disk.at(path);
}

// One damage. Returns whether a digest was made good over it.
bool damage(TestDisk& disk, fuzz::Input& input) {
  if (files_of(disk).empty()) return false;
  const std::uint8_t what = input.byte();
  std::string path;
  std::string& data = pick(disk, input, path);
  const std::size_t at = data.empty() ? 0 : input.number() % (data.size() + 1);
  switch (what % 8) {
    case 0: data.resize(at); break;
    case 1:
      if (at < data.size()) data[at] = static_cast<char>(data[at] ^ 1 << input.byte() % 8);
      break;
    case 2: {
      const std::string_view bytes = input.take(input.byte());
      if (at < data.size()) data.replace(at, std::min(bytes.size(), data.size() - at), bytes);
      break;
    }
    case 3: data.insert(at, input.take(input.byte())); break;
    case 4: data.append(input.take(input.byte())); break;
    case 5: disk.now.erase(path); return false;
    case 6: {
      const std::string name(input.take(input.byte() % 24));
      if (!name.empty() && name.find('/') == std::string::npos) {
        disk.now[std::string(parent_path(path)) + "/" + name] = std::make_shared<TestDisk::Inode>(*disk.now.at(path));
      }
      return false;
    }
    default:
      if (path.starts_with("manifests/")) {
        data = fuzz::with_manifest_digest(data);
        return true;
      }
      if (path.ends_with(".seen")) {
        data = fuzz::with_seen_digest(data);
        return true;
      }
  }
  return false;
}

void run(const std::uint8_t* bytes, std::size_t size) {
  static const auto frozen = disk_of(frozen_root);
  static const Digest job = frozen_job(*frozen);
  const auto disk = frozen->copy();
  fuzz::Input input(bytes, size);
  bool repaired = false;
  for (int damages = 0; damages < 8 && !input.empty(); ++damages) repaired |= damage(*disk, input);
  disk->hook = [](const DiskOperation& operation) -> std::optional<Error> {
    FD_CHECK(!leads_out(operation.path) && !leads_out(operation.second), "{} leads out of the root", operation.path);
    return std::nullopt;
  };
  TestAttempt attempt(*disk, 2, 1);
  attempt.job_digest = job;
  const std::vector<Status> results = attempt.train({});
  if (results[0].ok() || repaired) return;
  FD_CHECK(results[0].error().message != "restored something else", "what was restored is not what was saved");
}

}  // namespace
}  // namespace firedrill

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  firedrill::run(data, size);
  return 0;
}

// The file system seam, with the planned faults of its rank around every call, also those of the files it opens. A path
// pattern matches a rename by its old or its new name.
//
// What a fault wants of a call (FileCall) is done here: other bytes, no call, an old answer, a name that is not there
// yet. Late names are kept by path; for the others nothing outlives the call.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/seam/file_system.h"
#include "faults/injector.h"

namespace firedrill {

class FaultyFileSystem final : public ForwardingFileSystem {
 public:
  FaultyFileSystem(FileSystem& inner, Injector& injector) : ForwardingFileSystem(inner), injector_(injector) {}
  Result<std::unique_ptr<File>> create(std::string_view path) override;
  Result<std::unique_ptr<File>> open(std::string_view path) override;
  Result<FileInfo> stat(std::string_view path) override;
  Result<std::vector<std::string>> list(std::string_view directory) override;
  Status rename(std::string_view from, std::string_view to) override;
  Status remove(std::string_view path) override;
  Status make_directory(std::string_view path) override;
  Status sync_directory(std::string_view directory) override;
  Status drop_cache(std::string_view path) override;
  Result<std::int64_t> free_space() override;

 private:
  friend class FaultyFile;
  // A name that is not there yet for this rank.
  struct Late {
    std::string path;
    int looks = 0;
    Time until{0};
  };

  Result<std::unique_ptr<File>> with_faults(Result<std::unique_ptr<File>> file, std::string_view path);
  void hide(std::string_view path, const FileCall& call) {
    late_.push_back({std::string(path), call.hidden_looks, call.hidden_until});
  }
  // Counts a look at the name, and says that it is not there.
  Status look(std::string_view path);

  Injector& injector_;
  std::string written_;     // the file written to last, while faults watch
  std::vector<Late> late_;  // by the time they came
};

}  // namespace firedrill

// The newest checkpoint is the one whose file was modified last: as if the clocks of all nodes were right.
#include "harness/mutants/mutants.h"
#include "harness/mutants/steps.h"

namespace firedrill {
namespace {

class NewestByTime final : public Protocol {
 protected:
  Result<Survey> survey(FileSystem& files) override {
    FD_TRY(Survey survey, Protocol::survey(files));
    std::optional<CheckpointId> newest;
    Time newest_time{0};
    for (const CheckpointId& id : candidates(survey)) {
      const Result<FileInfo> info = files.stat(path_in(directory::manifests, id));
      if (info.failed_with(Code::not_found)) continue;
      if (!info) return info.error();
      if (newest && info->modified <= newest_time) continue;
      newest = id;
      newest_time = info->modified;
    }
    if (newest) look_no_further_than(newest, survey);
    return survey;
  }
};

}  // namespace

std::unique_ptr<Protocol> make_protocol_newest_by_time() { return std::make_unique<NewestByTime>(); }

}  // namespace firedrill

// "try: load, except: begin anew": a checkpoint that cannot be read counts as one that is not there.
#include "harness/mutants/mutants.h"
#include "harness/mutants/steps.h"

#include <algorithm>

#include "engine/ckpt/files.h"
#include "engine/ckpt/manifest.h"

namespace firedrill {
namespace {

class UnreadableIsAbsent final : public Protocol {
 protected:
  // What cannot be read, be it a listing or one manifest, is as good as deleted, and nobody knows of anything else.
  Result<Survey> survey(FileSystem& files) override {
    Result<Survey> surveyed = Protocol::survey(files);
    if (surveyed.failed_with(Code::io_error)) return Survey{};
    FD_TRY(Survey survey, std::move(surveyed));
    const auto unreadable = [&files](const CheckpointId& id) {
      return read_whole(files, path_in(directory::manifests, id), manifest_size_max).failed_with(Code::io_error);
    };
    if (std::any_of(survey.manifests.begin(), survey.manifests.end(), unreadable)) look_no_further_than({}, survey);
    return survey;
  }

  Status allow_start(const CheckpointContext&, const Survey&, const FindResult&) const override { return {}; }
};

}  // namespace

std::unique_ptr<Protocol> make_protocol_unreadable_is_absent() { return std::make_unique<UnreadableIsAbsent>(); }

}  // namespace firedrill

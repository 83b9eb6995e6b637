// A tracker file holds the number of the newest iteration (Megatron's latest_checkpointed_iteration.txt). Shards and
// metadata are synced as they should be; the tracker is written over, and without a tracker there is no checkpoint.
//
// Shows under every profile, and to a process that is killed there: between open(..., "w") and the write there is no
// number. posix and ext4 also lose the new tracker, or its bytes, after the save was reported.
#include "harness/mutants/mutants.h"
#include "harness/mutants/steps.h"

#include "engine/base/text.h"

namespace firedrill {
namespace {

constexpr std::string_view tracker = "latest_iteration.txt";

class TrackerFile final : public Protocol {
 protected:
  Status commit(const CheckpointContext& ctx, const CheckpointId& id, const Value& manifest,
                bool& rename_issued) override {
    FD_TRY_VOID(Protocol::commit(ctx, id, manifest, rename_issued));
    return write_over(ctx.parts.files, tracker, Value::copy_of(std::to_string(id.step)));
  }

  Result<Survey> survey(FileSystem& files) override {
    FD_TRY(Survey survey, Protocol::survey(files));
    FD_TRY(const std::string text, text_of(files, tracker));
    const auto step = parse_whole(text);
    std::optional<CheckpointId> newest;
    for (const CheckpointId& id : survey.manifests) {
      if (step && id.step == static_cast<std::int64_t>(*step) && (!newest || *newest < id)) newest = id;
    }
    look_no_further_than(newest, survey);
    return survey;
  }
};

}  // namespace

std::unique_ptr<Protocol> make_protocol_tracker_file() { return std::make_unique<TrackerFile>(); }

}  // namespace firedrill

// Resume by "the directory with the largest step": nothing asks whether it is complete.
#include "harness/mutants/mutants.h"

#include "engine/ckpt/id.h"

namespace firedrill {
namespace {

class LargestDirectory final : public Protocol {
 protected:
  Result<Survey> survey(FileSystem& files) override {
    FD_TRY(Survey survey, Protocol::survey(files));
    const Result<std::vector<std::string>> names = files.list(directory::shards);
    if (!names) return names.failed_with(Code::not_found) ? Result<Survey>(std::move(survey)) : names.error();
    survey.manifests = ids_among(*names);
    return survey;
  }

  std::vector<CheckpointId> candidates(const Survey& survey) const override { return survey.manifests; }

  Result<ManifestView> verify(FileSystem& files, Compute& compute, const ExpectedRun& expectation,
                              const CheckpointId& id, const Scope& scope) override {
    Result<ManifestView> whole = Protocol::verify(files, compute, expectation, id, scope);
    if (whole || whole.failed_with(Code::dead) || whole.failed_with(Code::fenced)) return whole;
    return describe_whatever_is_there(id);
  }

 private:
  static ManifestView describe_whatever_is_there(const CheckpointId& id) {
    ManifestHead head;
    head.step = id.step;
    head.attempt = static_cast<std::int32_t>(id.attempt);
    head.trial = static_cast<std::int32_t>(id.trial);
    const Value nothing = Value::copy_of(std::string_view());
    const auto bytes = std::as_bytes(std::span(&head, 1));
    const Value record = Value::copy_of(DType::u8, Shape{static_cast<std::int64_t>(bytes.size())}, bytes);
    return ManifestView(Value::pack({record, nothing, nothing, nothing, nothing, nothing}));
  }
};

}  // namespace

std::unique_ptr<Protocol> make_protocol_largest_directory() { return std::make_unique<LargestDirectory>(); }

}  // namespace firedrill

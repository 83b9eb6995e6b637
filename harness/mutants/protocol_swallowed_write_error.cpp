// A rank that cannot write one of its shards logs a warning and reports the shard all the same: the group commits.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class SwallowedWriteError final : public Protocol {
 protected:
  Status write_shard(const CheckpointContext& ctx, const std::string& path, const Value& bytes) override {
    Status written = Protocol::write_shard(ctx, path, bytes);
    if (written.failed_with(Code::io_error) || written.failed_with(Code::no_space)) return {};
    return written;
  }
};

}  // namespace

std::unique_ptr<Protocol> make_protocol_swallowed_write_error() { return std::make_unique<SwallowedWriteError>(); }

}  // namespace firedrill

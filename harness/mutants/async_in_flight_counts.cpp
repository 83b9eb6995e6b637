// Retention counts directories, also that of the save which waits for the one in flight: it is taken for the newest
// checkpoint, and one too many of the validated ones goes.
#include <atomic>

#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class CountsDirectories final : public Protocol {
 public:
  void overlap(bool overlaps) { overlaps_ = overlaps; }

 protected:
  std::vector<CheckpointId> victims(const std::vector<Known>& known, int keep_validated) const override {
    return Protocol::victims(known, overlaps_ ? std::max(keep_validated - 1, 1) : keep_validated);
  }

 private:
  std::atomic<bool> overlaps_ = false;
};

class Publisher final : public AsyncPublisher {
 public:
  Status join() override {
    auto& protocol = static_cast<CountsDirectories&>(AsyncPublisher::protocol());
    protocol.overlap(in_flight() && !done() && step() < context().job.steps);
    Status joined = AsyncPublisher::join();
    protocol.overlap(false);
    return joined;
  }
};

}  // namespace

std::unique_ptr<Protocol> make_async_in_flight_counts() { return std::make_unique<CountsDirectories>(); }
std::unique_ptr<AsyncPublisher> make_async_in_flight_counts_publisher() { return std::make_unique<Publisher>(); }

}  // namespace firedrill

// The main of this folder's tests: the same program also is the zygote of the process world.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string_view>

#include "engine/model/numerics.h"
#include "engine/os/zygote.h"
#include "harness/world/process_world.h"

namespace {

// Looks for a checkpoint for ever, without a word.
class Sleeping final : public firedrill::Protocol {
 protected:
  firedrill::Result<firedrill::Survey> survey(firedrill::FileSystem& files) override {
    for (;;) ::pause();
    return Protocol::survey(files);
  }
};

std::unique_ptr<firedrill::Protocol> protocol_of(std::string_view mutant) {
  if (mutant == "sleeping") return std::make_unique<Sleeping>();
  return std::make_unique<firedrill::Protocol>();
}

}  // namespace

int main(int argc, char** argv) {
  firedrill::pin_numerics();
  if (argc > 1 && std::string_view(argv[1]) == firedrill::zygote_verb) {
    return firedrill::zygote_main(
        argc, argv,
        {.protocol = protocol_of,
         .publisher = [](std::string_view) { return std::make_unique<firedrill::AsyncPublisher>(); },
         .rules = [](std::string_view) { return std::make_unique<firedrill::TrainingRules>(); }});
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

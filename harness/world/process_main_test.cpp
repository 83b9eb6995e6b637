// The main of this folder's tests: the same program also is the zygote of the process world.
#include <gtest/gtest.h>

#include <string_view>

#include "engine/model/numerics.h"
#include "engine/os/zygote.h"
#include "harness/world/process_world.h"

namespace {

std::unique_ptr<firedrill::Protocol> right_protocol(std::string_view) {
  return std::make_unique<firedrill::Protocol>();
}

}  // namespace

int main(int argc, char** argv) {
  firedrill::pin_numerics();
  if (argc > 1 && std::string_view(argv[1]) == firedrill::zygote_verb) {
    return firedrill::zygote_main(argc, argv, right_protocol);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

// The main of this folder's tests: the same program also is the zygote of the launcher's tests.
#include <gtest/gtest.h>

#include <cstring>

#include "engine/os/test_rank_test.h"
#include "engine/os/zygote.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], firedrill::zygote_verb) == 0) {
    return firedrill::run_zygote([] {}, firedrill::run_test_rank);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

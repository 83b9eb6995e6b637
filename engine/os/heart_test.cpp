#include "engine/os/heart.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <semaphore>

namespace firedrill {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Heart, BeatsAtOnceAndGoesOn) {
  Heart::hold_termination();
  std::counting_semaphore<> beaten(0);
  std::atomic<std::uint64_t> last = 0;
  const Heart heart(
      milliseconds(1),
      [&](std::uint64_t beats) {
        last = beats;
        beaten.release();
      },
      [] {});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(beaten.try_acquire_for(seconds(20)));
  EXPECT_GE(last, 5U);
}

TEST(Heart, HearsSigtermAndEndsWithoutAnother) {
  Heart::hold_termination();
  std::atomic<int> terms = 0;
  std::binary_semaphore told(0);
  {
    const Heart heart(
        seconds(60), [](std::uint64_t) {},
        [&] {
          ++terms;
          told.release();
        });
    ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
    ASSERT_TRUE(told.try_acquire_for(seconds(20)));
  }
  EXPECT_EQ(terms, 1) << "its own end is no signal to anybody";
}

}  // namespace
}  // namespace firedrill

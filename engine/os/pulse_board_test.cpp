// What a process shows on the board is seen by the one that made it, also when the process is gone.
#include "engine/os/pulse_board.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

namespace firedrill {
namespace {

// In a process of its own: rank 1 is in the backward pass of step 7 and then waits for rank 0.
int show(const std::string& board) {
  const Result<PulsePlace> place = PulsePlace::open(board, 1);
  if (!place) return 1;
  place->pulse().main.beat({.rank = 1, .step = 7, .phase = Phase::backward});
  place->pulse().main.wait_for(0);
  return 0;
}

TEST(PulseBoard, ShowsWhereAProcessStoodThatIsGone) {
  const Result<PulseBoard> board = PulseBoard::make(3);
  ASSERT_TRUE(board) << describe(board.error());
  const pid_t pid = ::fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) ::_exit(show(board->path()));
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(board->of(1), (PulseReading{.progress = 1, .waits_for = 0, .step = 7, .phase = Phase::backward}));
  EXPECT_EQ(board->of(0), PulseReading());
  EXPECT_EQ(board->of(2), PulseReading());
}

TEST(PulseBoard, ThatIsNotThereIsNamed) {
  const Result<PulsePlace> place = PulsePlace::open("/proc/1/fd/nothing", 0);
  ASSERT_TRUE(place.failed_with(Code::unavailable));
  EXPECT_THAT(place.error().message, testing::HasSubstr("/proc/1/fd/nothing"));
}

}  // namespace
}  // namespace firedrill

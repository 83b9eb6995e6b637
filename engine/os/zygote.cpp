// The zygote's own half: it takes orders, forks twice, and says which process became the rank.
#include "engine/os/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <exception>

#include "engine/os/termination.h"
#include "engine/os/unix_message.h"
#include "engine/os/zygote_order.h"

namespace firedrill {
namespace {

constexpr int exit_by_exception = 70;  // EX_SOFTWARE of sysexits.h
constexpr int exit_without_supervisor = 71;

struct Pipe {
  Descriptor read_end;
  Descriptor write_end;
};

bool make_pipe(Pipe& made) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  made.read_end = Descriptor(ends[0]);
  made.write_end = Descriptor(ends[1]);
  return true;
}

template <class T>
bool read_from(const Descriptor& from, T& value) {
  ssize_t got = 0;
  do {
    got = ::read(from.number(), &value, sizeof(value));
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof(value));
}

template <class T>
bool write_to(const Descriptor& to, const T& value) {
  ssize_t put = 0;
  do {
    put = ::write(to.number(), &value, sizeof(value));
  } while (put < 0 && errno == EINTR);
  return put == static_cast<ssize_t>(sizeof(value));
}

// In the rank's process. `go` comes when its parent is the supervisor and not the short-lived process between.
[[noreturn]] void be_rank(StartOrder order, Descriptor channel, Pipe& go, const RankMain& rank_main) {
  go.write_end.close();
  char byte = 0;
  const bool told = read_from(go.read_end, byte);
  go.read_end.close();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A supervisor that died before the line above sends no signal; then somebody else is the parent.
  if (!told || ::getppid() != order.supervisor) ::_exit(exit_without_supervisor);
  // Standard input is the zygote's line to the supervisor; a rank must not hold it.
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::dup2(nothing.number(), STDIN_FILENO);
  int code = exit_by_exception;
  try {
    code = rank_main(RankStart{.rank = order.rank,
                               .attempt = order.attempt,
                               .payload = std::move(order.payload),
                               .channel = std::move(channel)});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", order.rank, error.what());
  }
  std::fflush(nullptr);
  ::_exit(code);
}

// In the process between: becomes the parent of the rank, names it, and ends, so that the rank falls to the supervisor.
[[noreturn]] void be_between(StartOrder order, Descriptor channel, Pipe& pid, Pipe& go, const RankMain& rank_main) {
  const pid_t rank = ::fork();
  if (rank == 0) {
    pid = Pipe();
    be_rank(std::move(order), std::move(channel), go, rank_main);
  }
  // Here and not in the rank, so that the group is right before anybody hears of the rank. A group whose processes are
  // all gone cannot be joined.
  if (rank > 0 && ::setpgid(rank, order.group) != 0) ::setpgid(rank, 0);
  write_to(pid.write_end, rank);
  ::_exit(0);
}

// The pid of the new rank, or -1.
pid_t fork_rank(StartOrder order, Descriptor channel, const RankMain& rank_main) {
  Pipe pid;
  Pipe go;
  if (!make_pipe(pid) || !make_pipe(go)) return -1;
  std::fflush(nullptr);  // or what is buffered would be written by every child
  const pid_t between = ::fork();
  if (between == 0) {
    pid.read_end.close();
    be_between(std::move(order), std::move(channel), pid, go, rank_main);
  }
  if (between < 0) return -1;
  pid.write_end.close();
  pid_t rank = -1;
  if (!read_from(pid.read_end, rank)) rank = -1;
  while (::waitpid(between, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (rank > 0) write_to(go.write_end, char{1});
  return rank;
}

}  // namespace

int run_zygote(const std::function<void()>& warm_up, const RankMain& rank_main) {
  ::signal(SIGPIPE, SIG_IGN);
  Termination::unblock_in_child();
  warm_up();
  for (;;) {
    std::optional<UnixMessage> message = receive_message(STDIN_FILENO);
    if (!message) return 0;
    std::optional<StartOrder> order = read_start_order(message->bytes);
    if (!order) return 1;
    const pid_t pid = fork_rank(std::move(*order), std::move(message->descriptor), rank_main);
    if (!send_message(STDIN_FILENO, std::as_bytes(std::span(&pid, 1)), -1)) return 0;
  }
}

}  // namespace firedrill

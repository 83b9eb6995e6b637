// The supervisor's half of the zygote.
#define BOOST_PROCESS_USE_STD_FS  // Boost.Filesystem would be one more library to link
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
// Boost 1.81 forgets these three when it goes with the standard's filesystem.
#include <boost/optional.hpp>
#include <boost/type_traits/decay.hpp>
#include <boost/type_traits/is_convertible.hpp>
// After them.
#include <boost/process/v2/process.hpp>
#include <cstring>
#include <map>

#include "engine/base/check.h"
#include "engine/os/unix_message.h"
#include "engine/os/zygote.h"
#include "engine/os/zygote_order.h"

namespace firedrill {
namespace {

namespace process = boost::process::v2;
using boost::system::error_code;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

Error no_process(std::string_view what, int number) {
  return Error{.code = Code::unavailable,
               .message = fmt::format("{}: {}", what, strerrordesc_np(number)),
               .hint = "look at the limits of processes and open files (ulimit -u, ulimit -n)"};
}

// Makes the zygote's end of the line its standard input, and puts it into a group of its own before its program begins:
// an interrupt from the keyboard reaches the supervisor alone, which ends all in order.
struct AsStandardInput {
  int socket;
  error_code on_exec_setup(process::posix::default_launcher&, const process::filesystem::path&,
                           const char* const*) const {
    const bool done = ::setpgid(0, 0) == 0 && ::dup2(socket, STDIN_FILENO) >= 0;
    return done ? error_code() : error_code(errno, boost::system::system_category());
  }
};

// Waits until the pidfd says that the process has ended.
bool ended_within(int pidfd, std::chrono::nanoseconds patience) {
  const steady_clock::time_point until = steady_clock::now() + patience;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(until - steady_clock::now());
    pollfd watched{.fd = pidfd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&watched, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1'000'000)));
    if (ready > 0) return true;
    if (ready == 0 && steady_clock::now() >= until) return false;
  }
}

}  // namespace

struct ZygoteLauncher::State {
  boost::asio::io_context io;
  process::process zygote{io};
  Descriptor line;
  std::map<int, pid_t> groups;   // by attempt, of attempts with running ranks: the first rank's pid
  std::map<pid_t, int> running;  // started and not reaped; the attempt of each

  void forget(pid_t pid);
};

// The last one of an attempt takes its group along: what ranks left behind has fallen to this process, too. Done at
// once, while the group's number cannot have been given to anybody else.
void ZygoteLauncher::State::forget(pid_t pid) {
  const int attempt = running.at(pid);
  running.erase(pid);
  if (std::ranges::any_of(running, [attempt](const auto& other) { return other.second == attempt; })) return;
  const pid_t group = groups.at(attempt);
  groups.erase(attempt);
  ::kill(-group, SIGKILL);
  while (::waitpid(-group, nullptr, 0) > 0) {
  }
}

ZygoteLauncher::ZygoteLauncher(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<ZygoteLauncher>> ZygoteLauncher::start_zygote() {
  // Ranks lose their parent at once and fall to the nearest subreaper: this process, which then can wait for them.
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return no_process("cannot become a subreaper", errno);
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return no_process("no line to the zygote", errno);
  }
  auto state = std::make_unique<State>();
  state->line = Descriptor(ends[0]);
  const Descriptor theirs(ends[1]);
  error_code error;
  process::posix::default_launcher launcher;
  state->zygote = launcher(state->io.get_executor(), error, "/proc/self/exe", std::vector<std::string>{zygote_verb},
                           AsStandardInput{.socket = theirs.number()});
  if (error) return no_process("the zygote does not start", error.value());
  return std::unique_ptr<ZygoteLauncher>(new ZygoteLauncher(std::move(state)));
}

ZygoteLauncher::~ZygoteLauncher() {
  for (const auto& [pid, attempt] : state_->running) ::kill(pid, SIGKILL);
  while (!state_->running.empty()) {
    const pid_t pid = state_->running.begin()->first;
    ::waitpid(pid, nullptr, 0);
    state_->forget(pid);
  }
  state_->line.close();  // the zygote ends when nobody can order any more
  error_code ignored;
  state_->zygote.wait(ignored);
}

Result<RankProcess> ZygoteLauncher::start(RankStart start) {
  const auto group = state_->groups.find(start.attempt);
  ByteWriter order;
  write_start_order(StartOrder{.supervisor = ::getpid(),
                               .group = group == state_->groups.end() ? 0 : group->second,
                               .rank = start.rank,
                               .attempt = start.attempt,
                               .payload = std::move(start.payload)},
                    order);
  pid_t pid = -1;
  std::optional<UnixMessage> answer;
  if (send_message(state_->line.number(), order.bytes(), start.channel.number())) {
    answer = receive_message(state_->line.number());
  }
  if (!answer || answer->bytes.size() != sizeof(pid)) {
    return Error{.code = Code::unavailable, .message = "the zygote is gone", .hint = "its reason stands above"};
  }
  std::memcpy(&pid, answer->bytes.data(), sizeof(pid));
  if (pid <= 0) return no_process(fmt::format("rank {} cannot be forked", start.rank), EAGAIN);
  state_->groups.try_emplace(start.attempt, pid);
  state_->running.emplace(pid, start.attempt);
  Descriptor exited(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!exited.valid()) return no_process(fmt::format("rank {} cannot be watched", start.rank), errno);
  return RankProcess{.rank = start.rank, .attempt = start.attempt, .pid = pid, .exited = std::move(exited)};
}

Status ZygoteLauncher::signal(const RankProcess& process, int signal) {
  if (!state_->running.contains(process.pid)) return {};
  if (::kill(process.pid, signal) != 0 && errno != ESRCH) {
    return no_process(fmt::format("no signal {} to rank {}", signal, process.rank), errno);
  }
  return {};
}

Result<ProcessExit> ZygoteLauncher::reap(RankProcess& process, std::chrono::nanoseconds patience) {
  FD_CHECK(state_->running.contains(process.pid), "process {} of rank {} is not ours", process.pid, process.rank);
  if (!ended_within(process.exited.number(), patience)) {
    return Error{
        .code = Code::timeout, .message = fmt::format("rank {} has not ended", process.rank), .retryable = true};
  }
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(process.pid), &info, WEXITED) != 0) {
    if (errno != EINTR) return no_process(fmt::format("rank {} cannot be reaped", process.rank), errno);
  }
  state_->forget(process.pid);
  process.exited.close();
  if (info.si_code == CLD_EXITED) return ProcessExit{.code = info.si_status};
  return ProcessExit{.signal = info.si_status};
}

}  // namespace firedrill

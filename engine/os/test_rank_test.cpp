#include "engine/os/test_rank_test.h"

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <semaphore>
#include <stdexcept>

#include "engine/base/text.h"
#include "engine/os/channel.h"
#include "engine/os/process_host.h"

namespace firedrill {
namespace {

int kill_by_own_hand(RankStart start) {
  const Epoch epoch = Epoch::now();
  AbortSignal abort;
  const SteadyClock clock(epoch, abort);
  Channel channel(std::move(start.channel), [](const Command&) {});
  ChannelObserver observer(channel, clock);
  const NameId name = observer.intern("kill rank at write");
  observer.event(Event{.kind = EventKind::step_done, .rank = static_cast<std::int16_t>(start.rank), .step = 3});
  observer.event_answered(Event{.kind = EventKind::fault_fired, .a = 1, .name = name});
  ProcessHost(0, epoch).kill_self();
  return 0;
}

int talk_until_aborted(RankStart start) {
  std::binary_semaphore told(0);
  std::string reason;
  {
    Channel channel(std::move(start.channel), [&](const Command& command) {
      if (!reason.empty()) return;  // the end of the line is told, too
      reason = command.reason.message;
      told.release();
    });
    channel.event(Event{.kind = EventKind::rank_started, .name = channel.intern("dp=4")});
    told.acquire();
    channel.finish(RankOutcome{.end = RankEnd::failed,
                               .error = Error{.code = Code::aborted, .message = reason, .injected = true},
                               .payload = "last words"});
  }
  return 0;
}

}  // namespace

int run_test_rank(RankStart start) {
  const std::vector<std::string> words = split(start.payload, ' ');
  if (words[0] == "exit") return std::stoi(words[1]);
  if (words[0] == "throw") throw std::runtime_error("as ordered");
  if (words[0] == "kill") return kill_by_own_hand(std::move(start));
  if (words[0] == "talk") return talk_until_aborted(std::move(start));
  if (words[0] == "threads") {
    return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
  }
  if (words[0] == "child" && ::fork() > 0) return 0;
  for (;;) ::pause();
}

}  // namespace firedrill

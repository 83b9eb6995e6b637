// Channel: the line between one rank and its supervisor, a Unix socket with length-framed messages. This is the rank's
// end; the supervisor's is channel_peer.h.
//
// What a rank wrote here survives its SIGKILL: every message is handed to the kernel before the call returns. `ask`
// also waits until the supervisor has taken it in, which is how a fault gets journaled before it takes effect.
//
// A thread of the channel reads what the supervisor says; `on_command` runs on it. Start no channel before a fork.
// Errors: none are reported; a supervisor that is gone ends the rank's waits through `on_command` (abort).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/os/descriptor.h"
#include "engine/os/steady_clock.h"
#include "engine/seam/observer.h"
#include "engine/seam/pulse.h"

namespace firedrill {

// How a rank ended, by its own word. `died` is what the supervisor concludes when there is no word.
enum class RankEnd : std::uint8_t {
  finished,
  failed,
  died,
  check_failed,
  left,  // in order, before the job was done: all ranks had agreed to
};

struct RankOutcome {
  RankEnd end = RankEnd::finished;
  Error error;          // of failed and check_failed
  std::string payload;  // whatever rank and supervisor agreed on (final digest, counters)
};

enum class CommandKind : std::uint8_t {
  abort,  // the attempt is over: end all waits
  stop,   // come to an orderly end at the next step
};

struct Command {
  CommandKind kind = CommandKind::abort;
  Error reason;
};

class Channel {
 public:
  Channel(Descriptor socket, std::function<void(const Command&)> on_command);
  // Says nothing more; the supervisor sees the end of the line.
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  void event(const Event& event);
  // As event, and returns when the supervisor has answered (or is gone).
  void ask(const Event& event);
  NameId intern(std::string_view text);
  bool knows_state(const Digest& state);
  void describe_state(const Digest& state, std::span<const NamedDigest> tensors);
  // A sign of life; `beats`: how many there were, this one included.
  void heartbeat(std::uint64_t beats, const PulseReading& pulse);
  // The last word of the rank.
  void finish(const RankOutcome& outcome);

 private:
  void send_locked();
  void read_commands();

  Descriptor socket_;
  std::function<void(const Command&)> on_command_;
  std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  ByteWriter frame_;
  std::map<std::string, NameId, std::less<>> names_;
  std::set<Digest> states_;
  std::uint64_t asked_ = 0;
  std::uint64_t answered_ = 0;
  bool gone_ = false;
  std::atomic<bool> closing_ = false;
  std::thread reader_;
};

// The rank's observer: stamps the time and sends each event at once.
class ChannelObserver final : public Observer {
 public:
  ChannelObserver(Channel& channel, const Clock& clock) : channel_(channel), clock_(clock) {}
  void event(const Event& event) override;
  NameId intern(std::string_view text) override { return channel_.intern(text); }
  bool knows_state(const Digest& state) override { return channel_.knows_state(state); }
  void describe_state(const Digest& state, std::span<const NamedDigest> tensors) override {
    channel_.describe_state(state, tensors);
  }
  // Sends the event and waits until the supervisor has taken it in.
  void event_answered(const Event& event);

 private:
  Channel& channel_;
  const Clock& clock_;
};

}  // namespace firedrill

// ChannelPeer: the supervisor's end of a channel (channel.h). Turns frames back into events with their names as text,
// and answers, aborts or stops the rank.
//
// Threads: one. Errors: a frame that cannot be understood is our own bug or a damaged rank; it is reported to the
// listener as the end of the line with `corrupted`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/os/channel.h"

namespace firedrill {

// What a rank says, in the order in which it said it. `rank` is the number given to the peer.
class ChannelListener {
 public:
  virtual ~ChannelListener() = default;
  // `name` and `detail` are the texts of the event's numbers, which mean nothing here. If `asked`, the rank waits for
  // ChannelPeer::answer; fault_fired comes this way.
  virtual void on_event(int rank, const Event& event, std::string_view name, std::string_view detail, bool asked) = 0;
  // The names live as long as the call.
  virtual void on_state(int rank, const Digest& state, std::span<const NamedDigest> tensors) = 0;
  // `beats`: how many signs of life there were.
  virtual void on_heartbeat(int rank, std::uint64_t beats, const PulseReading& pulse) = 0;
  virtual void on_outcome(int rank, const RankOutcome& outcome) = 0;
};

// Both ends of a new channel: first the supervisor's (close-on-exec, non-blocking), then the rank's.
Result<std::pair<Descriptor, Descriptor>> make_channel();

class ChannelPeer {
 public:
  ChannelPeer(int rank, Descriptor socket, ChannelListener& listener)
      : rank_(rank), socket_(std::move(socket)), listener_(listener) {}

  // To wait on until it can be read; -1 once the line has ended.
  int descriptor() const { return socket_.number(); }
  // Takes in all that is there, without waiting. False: the rank has closed its end (it ended or died), or said what
  // cannot be understood.
  bool receive();
  // All that was received could be understood.
  bool understood() const { return understood_; }
  void answer();
  void abort(const Error& reason);
  void stop(const Error& reason);

 private:
  bool take_frames();
  bool take_frame(std::span<const std::byte> frame);
  void send(std::span<const std::byte> frame);

  int rank_;
  Descriptor socket_;
  ChannelListener& listener_;
  std::vector<std::byte> buffer_;
  std::vector<std::string> names_ = {std::string()};
  std::uint64_t asked_ = 0;
  std::uint64_t answered_ = 0;
  bool understood_ = true;
};

}  // namespace firedrill

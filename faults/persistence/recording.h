// The recording decorators: put around a rank's parts, they tell a Recorder what the rank does. They change nothing and
// see what passes them: put them next to the disk and the wire, below the faults, to record what really happened there;
// above the faults, to record what the engine was told.
//
// Threads: as the parts they are put around; tasks of one rank may share them. Errors: those of the inner part.
//
// A rank's tasks may share one RankRecorder and its decorators, or have their own; `task` tells which of them runs now.
// Spawned tasks and host events give edges.
//
// Calls that failed because the rank is dead or fenced had no effect and are not recorded.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "engine/seam/file_system.h"
#include "engine/seam/host.h"
#include "engine/seam/observer.h"
#include "engine/seam/transport.h"
#include "faults/persistence/recorder.h"

namespace firedrill::crash {

class RankRecorder {
 public:
  // `task`: a number for the running task, the same in all calls of it, 0 for the main task. None: the rank has one
  // task, or all of them count as one.
  RankRecorder(Recorder& recorder, const Position& position, int node, std::function<int()> task = nullptr)
      : recorder_(recorder), position_(position), node_(node), task_(std::move(task)) {}

  // The program that runs now.
  ProgramId program();
  OperationId record(Operation operation) {
    ++recorded_;
    return recorder_.record(program(), position_, std::move(operation));
  }
  // Operations so far.
  std::uint64_t recorded() const { return recorded_; }
  Recorder& recorder() { return recorder_; }
  const Position& position() const { return position_; }

 private:
  Recorder& recorder_;
  const Position& position_;
  int node_;
  std::function<int()> task_;
  std::atomic<std::uint64_t> recorded_{0};
  std::mutex mutex_;
  std::map<std::pair<int, int>, ProgramId> programs_;  // by attempt and task
};

class RecordingFileSystem final : public ForwardingFileSystem {
 public:
  RecordingFileSystem(FileSystem& inner, RankRecorder& rank) : ForwardingFileSystem(inner), rank_(rank) {}

  Result<std::unique_ptr<File>> create(std::string_view path) override;
  Result<std::unique_ptr<File>> open(std::string_view path) override;
  Status rename(std::string_view from, std::string_view to) override;
  Status remove(std::string_view path) override;
  Status make_directory(std::string_view path) override;
  Status sync_directory(std::string_view directory) override;

 private:
  RankRecorder& rank_;
};

// Put above the faults, beside a RecordingFileSystem below them: notes the writes, syncs and closes that a fault made
// fail on their way, which the one below never saw. `rank` must be that one's, and no two of its tasks may share it.
class RecordingInjectedErrors final : public ForwardingFileSystem {
 public:
  RecordingInjectedErrors(FileSystem& inner, RankRecorder& rank) : ForwardingFileSystem(inner), rank_(rank) {}

  Result<std::unique_ptr<File>> create(std::string_view path) override;
  Result<std::unique_ptr<File>> open(std::string_view path) override;
  Status sync_directory(std::string_view directory) override;

 private:
  RankRecorder& rank_;
};

class RecordingTransport final : public ForwardingTransport {
 public:
  RecordingTransport(Transport& inner, RankRecorder& rank) : ForwardingTransport(inner), rank_(rank) {}

  Status send(int peer, Tag tag, const Value& value, Time deadline) override;
  Result<Value> recv(int peer, Tag tag, Time deadline) override;

 private:
  RankRecorder& rank_;
};

// A task starts behind its spawn, and what waits for an event goes on behind its notification.
class RecordingHost final : public ForwardingHost {
 public:
  RecordingHost(Host& inner, RankRecorder& rank) : ForwardingHost(inner), rank_(rank) {}

  Status spawn(std::string_view name, std::function<void()> task) override;
  Status wait(EventId event, Time deadline) override;
  void notify(EventId event) override;

 private:
  RankRecorder& rank_;
  std::mutex mutex_;
  std::map<EventId, Recorder::Stamp> notified_;
};

// Notes `acknowledged` and `committed` events.
class RecordingObserver final : public ForwardingObserver {
 public:
  RecordingObserver(Observer& inner, RankRecorder& rank) : ForwardingObserver(inner), rank_(rank) {}

  void event(const Event& event) override;

 private:
  RankRecorder& rank_;
};

}  // namespace firedrill::crash

// SimRecording: what stands between the tasks of a rank and its seams while a run in the sim world is recorded: what
// they do to the disk, whom they tell what, and which of their tasks starts or wakes the other. It lies below the
// faults, so the trace says what really happened; and above them, for the calls that a fault made fail on their way:
// what a sync that failed left undone, no later one makes good.
#pragma once

#include <memory>

#include "engine/sim/machine.h"
#include "engine/train/publisher.h"
#include "faults/persistence/recording.h"

namespace firedrill {

// Of one rank in one attempt, shared by its tasks.
class RankRecording {
 public:
  RankRecording(crash::Recorder& recorder, const sim::Seams& seams, const Position& start, sim::Scheduler& scheduler)
      : recorder_(recorder),
        scheduler_(scheduler),
        start_(start),
        rank_(of_task(start_, seams)),
        host_(seams.host, rank_) {}

  // Records under the place of one task. `position` must outlive it.
  crash::RankRecorder of_task(const Position& position, const sim::Seams& seams) {
    return {recorder_, position, seams.host.node(), [this] { return running_task(); }};
  }
  Host& host() { return host_; }

 private:
  int running_task() const {
    return scheduler_.in_fiber() && scheduler_.current().name == AsyncPublisher::task_name ? 1 : 0;
  }

  crash::Recorder& recorder_;
  sim::Scheduler& scheduler_;
  Position start_;
  crash::RankRecorder rank_;
  crash::RecordingHost host_;
};

// Of one task.
class TaskRecording {
 public:
  TaskRecording(RankRecording& rank, const Position& position, const sim::Seams& seams, Observer& observer)
      : recorder_(rank.of_task(position, seams)),
        files_(seams.files, recorder_),
        transport_(seams.transport, recorder_),
        observer_(observer, recorder_) {}

  FileSystem& files() { return files_; }
  // `faulty`: the files above the faults; it must outlive what is returned.
  std::unique_ptr<FileSystem> above(FileSystem& faulty) {
    return std::make_unique<crash::RecordingInjectedErrors>(faulty, recorder_);
  }
  Transport& transport() { return transport_; }
  Observer& observer() { return observer_; }

 private:
  crash::RankRecorder recorder_;
  crash::RecordingFileSystem files_;
  crash::RecordingTransport transport_;
  crash::RecordingObserver observer_;
};

}  // namespace firedrill

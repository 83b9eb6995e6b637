// WitnessFileSystem: tells the observer of every operation that changed the disk, after it has. Stands directly around
// the disk, so what a fault keeps from the disk is not told.
#pragma once

#include "engine/seam/file_system.h"
#include "engine/seam/observer.h"
#include "engine/seam/pulse.h"

namespace firedrill {

class WitnessFileSystem final : public ForwardingFileSystem {
 public:
  // Each such operation is also a beat of the pulse.
  WitnessFileSystem(FileSystem& inner, const Position& position, Observer& observer, Pulse& pulse)
      : ForwardingFileSystem(inner), position_(position), observer_(observer), pulse_(pulse) {}

  Result<std::unique_ptr<File>> create(std::string_view path) override;
  Status rename(std::string_view from, std::string_view to) override;
  Status remove(std::string_view path) override;
  Status make_directory(std::string_view path) override;
  Status sync_directory(std::string_view directory) override;

  // For the files opened here.
  void tell(FileOp op, std::string_view path, std::int64_t bytes = 0, std::string_view second_path = {});

 private:
  Status told(Status status, FileOp op, std::string_view path, std::string_view second_path = {});

  const Position& position_;
  Observer& observer_;
  Pulse& pulse_;
};

}  // namespace firedrill

// Progress: what is being done, on standard error. On a terminal one line with a bar that is redrawn; elsewhere a line
// for each run that ends. Threads: any.
#pragma once

#include <iosfwd>
#include <mutex>
#include <string>
#include <string_view>

#include "harness/cli/verb.h"

namespace firedrill {

class Progress {
 public:
  Progress(Streams streams, std::size_t total, bool quiet) : streams_(streams), total_(total), quiet_(quiet) {}
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Shown on a terminal only: it comes and goes.
  void doing(std::string_view what);
  void done(std::string_view what);

 private:
  void draw(std::string_view what);

  Streams streams_;
  std::size_t total_;
  bool quiet_;
  std::mutex mutex_;
  std::size_t finished_ = 0;
  bool drawn_ = false;
};

}  // namespace firedrill

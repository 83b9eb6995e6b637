// Heart: the thread of a rank's process that gives signs of life, and hears SIGTERM.
//
// hold_termination must have been called in the process before its first thread was started, so that SIGTERM reaches
// the heart alone and never interrupts or ends anything. Threads: both functions are called on the heart's own thread,
// but the first beat, which is given before the constructor returns. The destructor returns when it has ended.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>

namespace firedrill {

class Heart {
 public:
  // `beat` is called at once and then every `period`, with how often it was, this time included; `terminate` for every
  // SIGTERM.
  Heart(std::chrono::nanoseconds period, std::function<void(std::uint64_t beats)> beat,
        std::function<void()> terminate);
  ~Heart();
  Heart(const Heart&) = delete;
  Heart& operator=(const Heart&) = delete;

  static void hold_termination();

 private:
  void live();

  std::chrono::nanoseconds period_;
  std::function<void(std::uint64_t)> beat_;
  std::function<void()> terminate_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace firedrill

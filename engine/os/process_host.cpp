#include "engine/os/process_host.h"

#include <signal.h>
#include <unistd.h>

#include <system_error>

#include "engine/base/check.h"

namespace firedrill {

ProcessHost::ProcessHost(int node, Epoch epoch) : node_(node), epoch_(epoch) {}

ProcessHost::~ProcessHost() {
  for (std::thread& task : tasks_) task.join();
}

Status ProcessHost::spawn(std::string_view name, std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  try {
    tasks_.emplace_back(std::move(task));
  } catch (const std::system_error& error) {
    return Error{.code = Code::unavailable, .message = fmt::format("task {} cannot start: {}", name, error.what())};
  }
  return {};
}

Status ProcessHost::wait(EventId event, Time deadline) {
  std::unique_lock lock(mutex_);
  bool& notified = notified_[event];  // a map's elements stay where they are
  const bool woken = changed_.wait_until(lock, epoch_.at(deadline), [&] { return notified || aborted_.has_value(); });
  if (aborted_) return *aborted_;
  if (!woken) return Error{.code = Code::timeout, .message = fmt::format("event {} was not notified in time", event)};
  notified = false;
  return {};
}

void ProcessHost::notify(EventId event) {
  {
    const std::lock_guard lock(mutex_);
    notified_[event] = true;
  }
  changed_.notify_all();
}

void ProcessHost::kill_self() {
  ::kill(::getpid(), SIGKILL);
  // The signal may reach another thread first; this one must not go on meanwhile.
  for (;;) ::pause();
}

void ProcessHost::abort(const Error& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!aborted_) {
      aborted_ = reason;
      aborted_->code = Code::aborted;
    }
  }
  changed_.notify_all();
}

}  // namespace firedrill

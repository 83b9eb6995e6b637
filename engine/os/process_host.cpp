#include "engine/os/process_host.h"

#include <signal.h>
#include <unistd.h>

#include <system_error>

#include "engine/base/check.h"

namespace firedrill {

ProcessHost::ProcessHost(int node, Epoch epoch) : node_(node), epoch_(epoch) {}

ProcessHost::~ProcessHost() { join_tasks(); }

Status ProcessHost::spawn(std::string_view name, std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  std::erase_if(tasks_, [](Task& old) {
    if (!old.ended) return false;
    old.thread.join();
    return true;
  });
  Task& fresh = tasks_.emplace_back();
  try {
    fresh.thread = std::thread([&fresh, run = std::move(task)] {
      run();
      fresh.ended = true;
    });
  } catch (const std::system_error& error) {
    tasks_.pop_back();
    return Error{.code = Code::unavailable, .message = fmt::format("task {} cannot start: {}", name, error.what())};
  }
  return {};
}

void ProcessHost::join_tasks() {
  std::list<Task> tasks;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(tasks_);  // a list's elements stay where they are
  }
  for (Task& task : tasks) task.thread.join();
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

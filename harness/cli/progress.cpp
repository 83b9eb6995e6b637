#include "harness/cli/progress.h"

#include <fmt/format.h>

#include <ostream>

namespace firedrill {
namespace {

constexpr std::string_view clear_line = "\r\x1b[K";
constexpr std::size_t bar_width = 24;
constexpr std::size_t text_width = 60;

}  // namespace

Progress::~Progress() {
  if (drawn_) streams_.err << clear_line << std::flush;
}

void Progress::draw(std::string_view what) {
  const std::size_t filled = total_ == 0 ? bar_width : finished_ * bar_width / total_;
  streams_.err << clear_line
               << fmt::format("[{:#<{}}{:.<{}}] {}/{} {}", "", filled, "", bar_width - filled, finished_, total_,
                              what.substr(0, text_width))
               << std::flush;
  drawn_ = true;
}

void Progress::doing(std::string_view what) {
  const std::lock_guard lock(mutex_);
  if (!quiet_ && streams_.err_is_terminal) draw(what);
}

void Progress::done(std::string_view what) {
  const std::lock_guard lock(mutex_);
  ++finished_;
  if (quiet_) return;
  if (streams_.err_is_terminal) {
    draw(what);
  } else {
    streams_.err << fmt::format("[{}/{}] {}\n", finished_, total_, what) << std::flush;
  }
}

}  // namespace firedrill

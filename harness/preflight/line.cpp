#include "harness/preflight/line.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace firedrill::preflight {
namespace {

constexpr int exit_without_supervisor = 71;  // EX_OSERR of sysexits.h

}  // namespace

void RankLine::say(const Json& message) {
  const std::string text = message.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t sent = ::send(socket_.number(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) ::_exit(exit_without_supervisor);
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string RankLine::hear() {
  for (;;) {
    if (const std::size_t end = heard_.find('\n'); end != std::string::npos) {
      std::string line = heard_.substr(0, end);
      heard_.erase(0, end + 1);
      return line;
    }
    std::array<char, 4096> buffer{};
    const ssize_t got = ::read(socket_.number(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) ::_exit(exit_without_supervisor);
    heard_.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

void RankLine::doing(std::string_view what) { say({{"doing", what}}); }

Json RankLine::meet(const Json& mine) {
  say({{"meet", mine}});
  return Json::parse(hear());
}

void RankLine::done(const Json& measured) { say({{"done", measured}}); }
void RankLine::broken(std::string_view why) { say({{"broken", why}}); }
void RankLine::failed(const ProbeFailure& failure) {
  say({{"failed", {{"why", failure.why}, {"needed", failure.needed}, {"remedy", failure.remedy}}}});
}

}  // namespace firedrill::preflight

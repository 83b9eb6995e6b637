#include "harness/preflight/team.h"

#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>

#include "engine/base/units.h"

namespace firedrill::preflight {
namespace {

using std::chrono::steady_clock;
constexpr std::chrono::seconds patience_with_killed{2};
// On a machine that is busy a rank may be slow without hanging: it has so many times the deadline while it computes, or
// waits for a core, for at least this share of each look.
constexpr int patience_with_busy = 3;
constexpr double share_of_busy = 0.05;
constexpr std::chrono::seconds between_looks{1};
constexpr int first_attempt = 1'000'000;  // process groups are told apart by it; no run has so many attempts

struct Member {
  RankProcess process;
  Descriptor line;
  std::string heard;
  std::vector<Json> meeting;  // what it said to a meeting that is not complete
  RankAnswer answer;
  bool ended = false;
  std::chrono::nanoseconds at_work{0};  // until the last look
  bool busy = true;                     // in the last look; a process that was just started is
};

// What its main thread computed, and waited for a core (Documentation/scheduler/sched-stats of Linux).
std::chrono::nanoseconds at_work(const Member& member) {
  std::ifstream told(fmt::format("/proc/{}/schedstat", member.process.pid));
  std::int64_t computed = 0;
  std::int64_t waited = 0;
  told >> computed >> waited;
  return std::chrono::nanoseconds(computed + waited);
}

void look_at(std::vector<Member>& members, std::chrono::nanoseconds passed) {
  for (Member& member : members) {
    const std::chrono::nanoseconds now = at_work(member);
    const auto share = static_cast<double>((now - member.at_work).count()) / static_cast<double>(passed.count());
    member.busy = share >= share_of_busy;
    member.at_work = now;
  }
}

bool any_is_busy(const std::vector<Member>& members) {
  return std::ranges::any_of(members, [](const Member& member) { return !member.ended && member.busy; });
}

// Takes in one message. False: it cannot be understood.
bool take(Member& member, const std::string& text) {
  const Json message = Json::parse(text, nullptr, false);
  if (!message.is_object() || message.size() != 1) return false;
  const std::string key = message.begin().key();
  member.answer.waiting = false;
  if (key == "doing") member.answer.doing = message["doing"].get<std::string>();
  if (key == "done") {
    member.answer.measured = message["done"];
    member.ended = true;
  }
  if (key == "failed") {
    const Json& failure = message[key];
    member.answer.failure = {.why = failure.at("why"), .needed = failure.at("needed"), .remedy = failure.at("remedy")};
    member.answer.trouble = member.answer.failure->why;
    member.ended = true;
  }
  if (key == "broken") {
    member.answer.trouble = message[key].get<std::string>();
    member.ended = true;
  }
  if (key == "meet") {
    member.meeting.push_back(message["meet"]);
    member.answer.waiting = true;
  }
  return true;
}

void receive(Member& member) {
  std::array<char, 65536> buffer{};
  const ssize_t got = ::recv(member.line.number(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    if (!member.ended) member.answer.trouble = "its process ended in the middle of it";
    member.ended = true;
    return;
  }
  member.heard.append(buffer.data(), static_cast<std::size_t>(got));
  for (std::size_t end = member.heard.find('\n'); end != std::string::npos; end = member.heard.find('\n')) {
    if (!take(member, member.heard.substr(0, end))) {
      member.answer.trouble = "what it says cannot be understood";
      member.ended = true;
    }
    member.heard.erase(0, end + 1);
  }
}

void tell(const Member& member, const std::string& text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t sent = ::send(member.line.number(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;  // it is gone, which its end of the line says, too
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
}

// Lets all go on when all have come.
void conclude_meeting(std::vector<Member>& members) {
  if (!std::ranges::all_of(members, [](const Member& member) { return !member.meeting.empty(); })) return;
  Json all = Json::array();
  for (Member& member : members) {
    all.push_back(member.meeting.front());
    member.meeting.erase(member.meeting.begin());
    member.answer.waiting = false;
  }
  const std::string text = all.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
  for (const Member& member : members) tell(member, text);
}

bool all_ended(const std::vector<Member>& members) {
  return std::ranges::all_of(members, [](const Member& member) { return member.ended; });
}

// One that ended badly never comes to a meeting: then nobody needs to be waited for.
bool hopeless(const std::vector<Member>& members) {
  const bool broken =
      std::ranges::any_of(members, [](const Member& member) { return member.ended && !member.answer.trouble.empty(); });
  return broken && std::ranges::all_of(members, [](const Member& m) { return m.ended || m.answer.waiting; });
}

// Nobody has said anything for the deadline, and nobody is at work; or it takes all too long.
bool given_up(const std::vector<Member>& members, std::chrono::nanoseconds silent, std::chrono::nanoseconds passed,
              std::chrono::nanoseconds deadline) {
  return (silent >= deadline && !any_is_busy(members)) || passed >= patience_with_busy * deadline;
}

// False: it was to stop.
bool listen(std::vector<Member>& members, std::chrono::nanoseconds deadline, const std::function<bool()>& stop) {
  const steady_clock::time_point began = steady_clock::now();
  steady_clock::time_point looked = began;
  steady_clock::time_point heard = began;
  while (!all_ended(members) && !hopeless(members)) {
    if (stop && stop()) return false;
    const steady_clock::time_point now = steady_clock::now();
    if (now - looked >= between_looks) {
      look_at(members, now - looked);
      looked = now;
    }
    if (given_up(members, now - heard, now - began, deadline)) {
      for (Member& member : members) member.answer.timed_out = !member.ended;
      return true;
    }
    const auto until = now - heard >= deadline ? looked + between_looks : heard + deadline;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
    std::vector<pollfd> watched;
    watched.reserve(members.size());
    for (const Member& member : members) {
      watched.push_back({.fd = member.ended ? -1 : member.line.number(), .events = POLLIN, .revents = 0});
    }
    ::poll(watched.data(), watched.size(), static_cast<int>(std::min<std::int64_t>(left, 1'000)));
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (watched[i].revents == 0) continue;
      receive(members[i]);
      heard = steady_clock::now();
    }
    conclude_meeting(members);
  }
  return true;
}

}  // namespace

Result<std::vector<RankAnswer>> Team::ask(const Json& work, int ranks, std::chrono::nanoseconds deadline,
                                          const std::function<bool()>& stop) {
  const int attempt = first_attempt + ++asked_;
  std::vector<Member> members;
  std::optional<Error> none;  // why there are no answers
  for (int rank = 0; rank < ranks && !none; ++rank) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      none = Error{.code = Code::unavailable,
                   .message = fmt::format("no line to rank {}: {}", rank, strerrordesc_np(errno)),
                   .hint = "raise the limit of open files (ulimit -n)"};
      break;
    }
    Member member;
    member.line = Descriptor(ends[0]);
    Json order = work;
    order["ranks"] = ranks;
    Result<RankProcess> process = launcher_.start(
        {.rank = rank, .attempt = attempt, .payload = "preflight" + order.dump(), .channel = Descriptor(ends[1])});
    if (!process) {
      none = process.error();
      break;
    }
    member.process = std::move(*process);
    members.push_back(std::move(member));
  }
  const bool heard_out = none || listen(members, deadline, stop);
  // What fails while all is being ended says nothing.
  const bool failed = none || std::ranges::any_of(members, [](const Member& m) { return !m.answer.trouble.empty(); });
  if (!heard_out || (failed && stop && stop())) {
    none = Error{.code = Code::aborted, .message = "it was interrupted", .hint = "run it again"};
  }
  for (const Member& member : members) (void)launcher_.signal(member.process, SIGKILL).ok();
  for (Member& member : members) {
    if (!launcher_.reap(member.process, patience_with_killed)) abandoned_ = true;
  }
  if (none) return *none;
  std::vector<RankAnswer> answers;
  for (Member& member : members) {
    if (!member.ended && member.answer.trouble.empty()) {
      member.answer.trouble = member.answer.waiting ? "it waited for the other ranks" : "it did not come back";
    }
    answers.push_back(std::move(member.answer));
  }
  return answers;
}

int culprit_of(const std::vector<RankAnswer>& answers) {
  int culprit = -1;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].trouble.empty()) continue;
    if (!answers[i].waiting) return static_cast<int>(i);
    if (culprit < 0) culprit = static_cast<int>(i);
  }
  return culprit;
}

std::vector<Finding> troubles_of(const std::vector<RankAnswer>& answers, const std::string& where,
                                 std::chrono::nanoseconds deadline, const std::string& remedy) {
  const int culprit = culprit_of(answers);
  if (culprit < 0) return {};
  const RankAnswer& answer = answers[static_cast<std::size_t>(culprit)];
  const auto seconds = std::chrono::duration<double>(deadline).count();
  if (answer.failure) {
    return {{Standing::no_go, fmt::format("rank {}: {}", culprit, answer.trouble), answer.failure->needed, where,
             answer.failure->remedy}};
  }
  Finding finding{.standing = answer.timed_out ? Standing::no_go : Standing::unknown,
                  .measured = fmt::format("rank {}: {}, at: {}", culprit, answer.trouble,
                                          answer.doing.empty() ? "its start" : answer.doing),
                  .needed = fmt::format("an answer within {:.0f} s", seconds),
                  .where = where,
                  .remedy = remedy};
  return {finding};
}

}  // namespace firedrill::preflight

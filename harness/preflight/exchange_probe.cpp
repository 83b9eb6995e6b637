// What a rank measures of the exchange: each collective of each of its groups, with inputs whose results are exactly
// predictable (small whole numbers, so that sums are exact in any order), then times of groups and of links. The idea
// of checking against numbers known beforehand is that of nccl-tests' verifiable mode.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "engine/base/check.h"
#include "engine/comm/collectives_over_transport.h"
#include "engine/seam/collective_op.h"
#include "engine/seam/silent_observer.h"
#include "harness/plan/plan.h"
#include "harness/preflight/exchange.h"
#include "harness/preflight/meeting.h"
#include "harness/preflight/probes.h"

namespace firedrill::preflight {
namespace {

using SteadyTime = std::chrono::steady_clock;

constexpr std::int64_t few = 1'000;    // elements: reduced by one owner
constexpr std::int64_t many = 80'000;  // 320 kB: reduced by shards
constexpr int repeats = 12;            // of each time, of which the shortest counts
constexpr int repeats_large = 4;
// At links that seem slow, each time after a longer pause: what else a machine does may last for seconds.
constexpr int looks_again = 4;
constexpr std::chrono::milliseconds first_pause{50};
constexpr int longer_pause = 3;
constexpr int ranks_with_all_links = 16;
constexpr Tag link_tag = Tag{1} << 62;

std::int64_t number_at(int lane, std::int64_t element) { return (element * 7 + lane * 13) % 61 - 30; }

template <class T>
Value input_of(int lane, std::int64_t count) {
  std::vector<T> numbers(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) numbers[static_cast<std::size_t>(i)] = static_cast<T>(number_at(lane, i));
  return Value::copy_of(std::span<const T>(numbers));
}

std::int64_t expected_at(const Group& group, std::int64_t element, ReduceOp op) {
  std::int64_t result = number_at(0, element);
  for (int lane = 1; lane < group.lane_count(); ++lane) {
    const std::int64_t next = number_at(lane, element);
    if (op == ReduceOp::sum) result += next;
    if (op == ReduceOp::max) result = std::max(result, next);
    if (op == ReduceOp::min) result = std::min(result, next);
  }
  return result;
}

// "" or what is wrong with elements [begin, ...) of a reduction.
template <class T>
std::string difference(const Value& got, const Group& group, ReduceOp op, Range range) {
  const std::span<const T> numbers = got.as<T>();
  if (static_cast<std::int64_t>(numbers.size()) != range.count()) {
    return fmt::format("{} elements, not {}", numbers.size(), range.count());
  }
  for (std::int64_t i = 0; i < range.count(); ++i) {
    const std::int64_t expected = expected_at(group, range.begin + i, op);
    if (numbers[static_cast<std::size_t>(i)] == static_cast<T>(expected)) continue;
    return fmt::format("element {} is {}, not {}", range.begin + i, numbers[static_cast<std::size_t>(i)], expected);
  }
  return "";
}

class ExchangeProbe {
 public:
  ExchangeProbe(const Probe& probe, const Plan& plan, Meeting& meeting)
      : probe_(probe),
        plan_(plan),
        meeting_(meeting),
        bandwidth_(probe.work.at("bandwidth").get<bool>()),
        collectives_(meeting.transport(), compute_, position_, observer_) {}

  Result<ExchangeOfRank> run();

 private:
  Call call(std::string_view purpose) const { return {.purpose = purpose, .deadline = meeting_.deadline()}; }
  template <class T>
  Status reductions(const Group& group, std::int64_t count);
  Status moves(const Group& group);
  Status times(const Group& group);
  Result<double> all_reduce_seconds(const Group& group, std::int64_t floats, int times);
  Status measure_group(const Group& group, const std::string& kind);
  Status links();
  Result<double> one_way(int peer, bool first, std::int64_t bytes, int times);
  Status measure_link(LinkMeasured& link);
  void check(const Group& group, std::string_view what, const std::string& wrong);

  const Probe& probe_;
  const Plan& plan_;
  Meeting& meeting_;
  bool bandwidth_;
  DirectCompute compute_;
  Position position_;
  SilentObserver observer_;
  TransportCollectives collectives_;
  GroupMeasured* current_ = nullptr;
  ExchangeOfRank result_;
};

void ExchangeProbe::check(const Group& group, std::string_view what, const std::string& wrong) {
  ++current_->calls;
  if (!wrong.empty()) current_->wrong.push_back(fmt::format("{} of {}: {}", what, stream_of(group), wrong));
}

template <class T>
Status ExchangeProbe::reductions(const Group& group, std::int64_t count) {
  std::vector<Value> lanes;
  const LaneRange own = group.lanes[static_cast<std::size_t>(group.me)];
  for (int lane = own.begin; lane < own.end; ++lane) lanes.push_back(input_of<T>(lane, count));
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min}) {
    const std::string name = fmt::format("all_reduce {} of {} elements", to_string(op), count);
    probe_.line.doing(fmt::format("{} over {}", name, stream_of(group)));
    FD_TRY(const Value whole, collectives_.all_reduce(group, lanes, op, call("preflight")));
    check(group, name, difference<T>(whole, group, op, {0, count}));
  }
  probe_.line.doing(fmt::format("reduce_scatter over {}", stream_of(group)));
  FD_TRY(const Value shard, collectives_.reduce_scatter(group, lanes, ReduceOp::sum, call("preflight")));
  check(group, "reduce_scatter sum",
        difference<T>(shard, group, ReduceOp::sum, shard_range(count, group.size(), group.me)));
  return {};
}

// What member `from` has for member `to`.
Value parcel(int from, int to) { return input_of<std::int64_t>(from * 1'000 + to, 200 + from); }

std::string difference(const Value& got, const Value& expected) {
  if (got && got.same_as(expected)) return "";
  return got ? "other bytes than were sent" : "nothing";
}

Status ExchangeProbe::moves(const Group& group) {
  const int size = group.size();
  const int me = group.me;
  const std::string stream = stream_of(group);
  probe_.line.doing(fmt::format("all_gather over {}", stream));
  FD_TRY(const Value all, collectives_.all_gather(group, parcel(me, 0), call("preflight")));
  for (int i = 0; i < size; ++i) check(group, "all_gather", difference(all[static_cast<std::size_t>(i)], parcel(i, 0)));
  for (int root = 0; root < size; ++root) {
    probe_.line.doing(fmt::format("broadcast from member {} over {}", root, stream));
    FD_TRY(const Value got,
           collectives_.broadcast(group, me == root ? parcel(root, 1) : Value(), root, call("preflight")));
    check(group, fmt::format("broadcast from member {}", root), difference(got, parcel(root, 1)));
  }
  probe_.line.doing(fmt::format("all_to_all over {}", stream));
  std::vector<Value> to;
  for (int i = 0; i < size; ++i) to.push_back(parcel(me, i));
  FD_TRY(const Value from, collectives_.all_to_all(group, to, call("preflight")));
  for (int i = 0; i < size; ++i) {
    check(group, "all_to_all", difference(from[static_cast<std::size_t>(i)], parcel(i, me)));
  }
  probe_.line.doing(fmt::format("send and recv in {}", stream));
  FD_TRY_VOID(collectives_.send(group, (me + 1) % size, parcel(me, 2), call("preflight")));
  FD_TRY(const Value before, collectives_.recv(group, (me + size - 1) % size, call("preflight")));
  check(group, "send and recv", difference(before, parcel((me + size - 1) % size, 2)));
  probe_.line.doing(fmt::format("barrier over {}", stream));
  FD_TRY_VOID(collectives_.barrier(group, call("preflight")));
  check(group, "barrier", "");
  return {};
}

Result<double> ExchangeProbe::all_reduce_seconds(const Group& group, std::int64_t floats, int times) {
  const LaneRange own = group.lanes[static_cast<std::size_t>(group.me)];
  const std::vector<Value> lanes(static_cast<std::size_t>(own.count()), input_of<float>(0, floats));
  double shortest = 1e9;
  for (int i = 0; i < times; ++i) {
    FD_TRY_VOID(collectives_.barrier(group, call("preflight")));
    const auto began = SteadyTime::now();
    FD_TRY(const Value ignored, collectives_.all_reduce(group, lanes, ReduceOp::sum, call("preflight")));
    shortest = std::min(shortest, std::chrono::duration<double>(SteadyTime::now() - began).count());
  }
  return shortest;
}

Status ExchangeProbe::times(const Group& group) {
  probe_.line.doing(fmt::format("timing all_reduce over {}", stream_of(group)));
  std::vector<std::pair<std::int64_t, int>> sizes = {{16, repeats}};
  if (bandwidth_)
    sizes = {{16, repeats}, {64 << 10, repeats_large}, {256 << 10, repeats_large}, {1 << 20, repeats_large}};
  for (const auto& [floats, times] : sizes) {
    FD_TRY(const double seconds, all_reduce_seconds(group, floats, times));
    current_->all_reduce.push_back({.bytes = static_cast<double>(floats) * sizeof(float), .seconds = seconds});
  }
  return {};
}

Status ExchangeProbe::measure_group(const Group& group, const std::string& kind) {
  result_.groups.push_back({.kind = kind, .stream = stream_of(group)});
  current_ = &result_.groups.back();
  FD_TRY_VOID(reductions<float>(group, few));
  FD_TRY_VOID(reductions<std::int64_t>(group, few));
  FD_TRY_VOID(reductions<float>(group, many));
  FD_TRY_VOID(moves(group));
  return times(group);
}

Result<double> ExchangeProbe::one_way(int peer, bool first, std::int64_t bytes, int times) {
  MutableValue room(DType::u8, Shape{bytes});
  std::ranges::fill(room.bytes(), std::byte{7});
  Value ball = std::move(room).freeze();
  double shortest = 1e9;
  for (int i = 0; i < times; ++i) {
    const auto began = SteadyTime::now();
    if (first) FD_TRY_VOID(meeting_.transport().send(peer, link_tag, ball, meeting_.deadline()));
    FD_TRY(ball, meeting_.transport().recv(peer, link_tag, meeting_.deadline()));
    if (!first) FD_TRY_VOID(meeting_.transport().send(peer, link_tag, ball, meeting_.deadline()));
    shortest = std::min(shortest, std::chrono::duration<double>(SteadyTime::now() - began).count() / 2);
  }
  return shortest;
}

// The shortest of these times and of those that it has already.
Status ExchangeProbe::measure_link(LinkMeasured& link) {
  std::vector<std::pair<std::int64_t, int>> sizes = {{64, repeats}};
  if (bandwidth_)
    sizes = {{64, repeats}, {64 << 10, repeats_large}, {512 << 10, repeats_large}, {2 << 20, repeats_large}};
  const bool first = probe_.rank == link.a;
  const int peer = first ? link.b : link.a;
  probe_.line.doing(fmt::format("timing the link to rank {}", peer));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    FD_TRY(const double seconds, one_way(peer, first, sizes[i].first, sizes[i].second));
    if (link.one_way.size() <= i)
      link.one_way.push_back({.bytes = static_cast<double>(sizes[i].first), .seconds = seconds});
    link.one_way[i].seconds = std::min(link.one_way[i].seconds, seconds);
  }
  return {};
}

// One link after the other, so that none waits for another; in large worlds the neighbours only.
Status ExchangeProbe::links() {
  std::vector<LinkMeasured> all;
  for (int a = 0; a < probe_.ranks; ++a) {
    for (int b = a + 1; b < probe_.ranks; ++b) {
      const bool neighbours = b == a + 1 || (a == 0 && b == probe_.ranks - 1);
      if (probe_.ranks > ranks_with_all_links && !neighbours) continue;
      all.push_back({.a = a, .b = b, .in_node = node_of(plan_.job, a) == node_of(plan_.job, b)});
    }
  }
  std::vector<std::size_t> due(all.size());
  for (std::size_t i = 0; i < due.size(); ++i) due[i] = i;
  std::chrono::milliseconds pause = first_pause;
  for (int look = 0; look <= looks_again && !due.empty(); ++look) {
    if (look > 0) {
      std::this_thread::sleep_for(pause);
      pause *= longer_pause;
    }
    for (const std::size_t i : due) {
      if (probe_.rank == all[i].a || probe_.rank == all[i].b) FD_TRY_VOID(measure_link(all[i]));
      // The first of the two knows how long it took; from it all learn of it, and decide alike.
      ExchangeOfRank mine;
      if (probe_.rank == all[i].a) mine.links.push_back(all[i]);
      const auto said = probe_.line.meet(mine)[static_cast<std::size_t>(all[i].a)].get<ExchangeOfRank>();
      if (probe_.rank != all[i].b) all[i] = said.links.at(0);
      if (probe_.rank == all[i].b) all[i].one_way = said.links.at(0).one_way;
    }
    due = slow_links(all);
  }
  for (const LinkMeasured& link : all) {
    if (link.a == probe_.rank) result_.links.push_back(link);
  }
  return {};
}

Result<ExchangeOfRank> ExchangeProbe::run() {
  position_ = {.attempt = 1, .rank = probe_.rank, .step = 0, .phase = Phase::exchange};
  const Groups groups = groups_of(plan_.job, plan_.layout, probe_.rank);
  // Without experts those groups are there and never used.
  const std::pair<const Group*, const char*> all[] = {{&groups.world, "world"},
                                                      {&groups.publish, "publish"},
                                                      {&groups.dp, "dp"},
                                                      {&groups.tp, "tp"},
                                                      {&groups.cp, "cp"},
                                                      {&groups.pp, "pp"},
                                                      {&groups.pp_backward, "pp.back"},
                                                      {&groups.model, "model"},
                                                      {&groups.ep, "ep"},
                                                      {&groups.expert_cp, "expert.cp"},
                                                      {&groups.expert_dp, "expert.dp"},
                                                      {&groups.tied, "tied"}};
  for (const auto& [group, kind] : all) {
    const bool for_experts = group == &groups.ep || group == &groups.expert_cp || group == &groups.expert_dp;
    const bool used = !for_experts || plan_.job.model.experts > 0;
    if (used && group->size() > 1) FD_TRY_VOID(measure_group(*group, kind));
    probe_.line.doing("waiting for the other groups");
    probe_.line.meet();
  }
  FD_TRY_VOID(links());
  return std::move(result_);
}

void put(Json& json, const std::vector<TimedSize>& points) {
  json = Json::array();
  for (const TimedSize& point : points) json.push_back({point.bytes, point.seconds});
}

std::vector<TimedSize> points_from(const Json& json) {
  std::vector<TimedSize> points;
  for (const Json& point : json) points.push_back({point.at(0).get<double>(), point.at(1).get<double>()});
  return points;
}

}  // namespace

void to_json(Json& json, const ExchangeOfRank& rank) {
  json = {{"groups", Json::array()}, {"links", Json::array()}};
  for (const GroupMeasured& group : rank.groups) {
    Json one = {{"kind", group.kind}, {"stream", group.stream}, {"calls", group.calls}, {"wrong", group.wrong}};
    put(one["all_reduce"], group.all_reduce);
    json["groups"].push_back(one);
  }
  for (const LinkMeasured& link : rank.links) {
    Json one = {{"a", link.a}, {"b", link.b}, {"in_node", link.in_node}};
    put(one["one_way"], link.one_way);
    json["links"].push_back(one);
  }
}

void from_json(const Json& json, ExchangeOfRank& rank) {
  for (const Json& group : json.at("groups")) {
    rank.groups.push_back({.kind = group.at("kind"),
                           .stream = group.at("stream"),
                           .calls = group.at("calls"),
                           .wrong = group.at("wrong").get<std::vector<std::string>>(),
                           .all_reduce = points_from(group.at("all_reduce"))});
  }
  for (const Json& link : json.at("links")) {
    rank.links.push_back({.a = link.at("a"),
                          .b = link.at("b"),
                          .in_node = link.at("in_node"),
                          .one_way = points_from(link.at("one_way"))});
  }
}

ProbeFailed no_exchange(const Error& error) {
  return ProbeFailed({.why = describe(error),
                      .needed = "ranks that reach each other",
                      .remedy = "look at the network between this rank and the others, and at its firewall"});
}

Json probe_exchange(const Probe& probe) {
  const Result<Plan> plan = plan_from_json(probe.work.at("plan").get<std::string>(), "preflight");
  FD_CHECK(plan.ok(), "{}", describe(plan.error()));
  Result<std::unique_ptr<Meeting>> meeting = Meeting::of(probe);
  if (!meeting) throw no_exchange(meeting.error());
  Result<ExchangeOfRank> result = ExchangeProbe(probe, *plan, **meeting).run();
  if (!result) throw no_exchange(result.error());
  probe.line.meet();  // nobody closes a connection that another still uses
  return *result;
}

}  // namespace firedrill::preflight

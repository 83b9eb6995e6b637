#include "faults/interposer/nccl_plan.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "engine/base/text.h"
#include "engine/base/units.h"

namespace firedrill::interposer {
namespace {

using Json = nlohmann::json;

constexpr std::size_t plan_bytes_max = std::size_t{16} << 20;

std::string digest_hint() { return "a plan is written by `firedrill run --out DIR`, or by hand as the README shows"; }

// Collects mistakes and hands out fields; each message begins with the file and the place.
class PlanReader {
 public:
  explicit PlanReader(std::string origin) : origin_(std::move(origin)) {}

  void mistake(const std::string& place, const std::string& what) {
    mistakes_.push_back(fmt::format("{}: {}: {}", origin_, place, what));
  }
  const std::vector<std::string>& mistakes() const { return mistakes_; }

  bool is_mapping(const Json& json, const std::string& place) {
    if (!json.is_object()) mistake(place, fmt::format("a mapping is expected, not {}", json.dump()));
    return json.is_object();
  }

  void known_keys(const Json& json, const std::string& place, std::span<const std::string> keys) {
    for (const auto& [key, value] : json.items()) {
      if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
      const std::optional<std::string> meant = nearest(key, keys);
      mistake(place, fmt::format("`{}` is not known here: {}", key,
                                 meant          ? fmt::format("did you mean `{}`?", *meant)
                                 : keys.empty() ? std::string("nothing stands here; remove it")
                                                : fmt::format("give {}, or remove it", join(keys, ", "))));
    }
  }

  std::optional<std::int64_t> whole(const Json& json, const std::string& place, std::int64_t least,
                                    std::int64_t most = std::numeric_limits<std::int32_t>::max()) {
    if (json.is_number_unsigned() && json.get<std::uint64_t>() <= static_cast<std::uint64_t>(most) &&
        json.get<std::int64_t>() >= least) {
      return json.get<std::int64_t>();
    }
    mistake(place, fmt::format("a whole number from {} is expected, not {}", least, json.dump()));
    return std::nullopt;
  }

  std::chrono::nanoseconds duration(const Json& json, const std::string& place) {
    if (json.is_string()) {
      const auto parsed = parse_duration(json.get<std::string>());
      if (parsed && *parsed > std::chrono::nanoseconds(0)) return *parsed;
    }
    mistake(place, fmt::format("a time above 0 with its unit is expected, such as \"50ms\", not {}", json.dump()));
    return std::chrono::nanoseconds(0);
  }

  bool truth(const Json& json, const std::string& place) {
    if (!json.is_boolean()) mistake(place, fmt::format("true or false is expected, not {}", json.dump()));
    return json.is_boolean() && json.get<bool>();
  }

 private:
  std::string origin_;
  std::vector<std::string> mistakes_;
};

const std::vector<std::string>& op_words() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> list = {"collective"};
    for (int op = static_cast<int>(Op::all_reduce); op <= static_cast<int>(Op::recv); ++op) {
      list.emplace_back(to_string(static_cast<Op>(op)));
    }
    return list;
  }();
  return words;
}

const std::vector<std::string>& kind_words() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> list;
    for (int kind = 0; kind < kind_count; ++kind) list.emplace_back(to_string(static_cast<Kind>(kind)));
    return list;
  }();
  return words;
}

void read_op(PlanReader& reader, const Json& json, const std::string& place, CallPattern& at) {
  const std::vector<std::string>& words = op_words();
  const auto found = json.is_string() ? std::find(words.begin(), words.end(), json.get<std::string>()) : words.end();
  if (found == words.end()) {
    return reader.mistake(place, fmt::format("{} is no operation of NCCL: give one of {}, or leave op out for any",
                                             json.dump(), join(words, ", ")));
  }
  at.collectives_only = found == words.begin();
  if (!at.collectives_only) at.op = static_cast<Op>(static_cast<int>(Op::all_reduce) + (found - words.begin()) - 1);
}

void read_at(PlanReader& reader, const Json& json, const std::string& place, CallPattern& at) {
  if (!reader.is_mapping(json, place)) return;
  for (const char* field : {"step", "phase", "path"}) {
    if (!json.contains(field)) continue;
    reader.mistake(fmt::format("{}.{}", place, field),
                   "the interposer sees calls of NCCL, not steps, phases or files: name the call by op and nth");
  }
  static const std::vector<std::string> keys = {"rank", "attempt", "op",    "comm", "nth",
                                                "when", "step",    "phase", "path"};
  reader.known_keys(json, place, keys);
  if (!json.contains("rank")) reader.mistake(place, "`rank` is missing: give the rank in the whole job, from 0");
  if (json.contains("rank")) {
    at.rank = static_cast<std::int32_t>(reader.whole(json["rank"], place + ".rank", 0).value_or(0));
  }
  if (json.contains("attempt")) {
    if (json["attempt"] == "any") {
      at.attempt.reset();
    } else {
      at.attempt =
          static_cast<std::int32_t>(reader.whole(json["attempt"], place + ".attempt (or \"any\")", 1).value_or(1));
    }
  }
  if (json.contains("op")) read_op(reader, json["op"], place + ".op", at);
  if (json.contains("comm")) {
    at.comm = static_cast<std::uint32_t>(reader.whole(json["comm"], place + ".comm", 1).value_or(1));
  }
  if (json.contains("nth"))
    at.nth = static_cast<std::uint64_t>(reader.whole(json["nth"], place + ".nth", 1).value_or(1));
  if (json.contains("when")) {
    at.after = json["when"] == "after";
    if (!at.after && json["when"] != "before") {
      reader.mistake(place + ".when", fmt::format("`before` or `after` is expected, not {}", json["when"].dump()));
    }
  }
}

void read_options(PlanReader& reader, const Json& json, const std::string& place, NcclFault& fault) {
  if (!reader.is_mapping(json, place)) return;
  std::vector<std::string> keys;
  if (fault.kind == Kind::delay) keys = {"delay"};
  if (fault.kind == Kind::reorder) keys = {"hold"};
  if (fault.kind == Kind::wrong_count) keys = {"count"};
  reader.known_keys(json, place, keys);
  if (fault.kind == Kind::delay) {
    if (!json.contains("delay")) {
      reader.mistake(place, "`delay` is missing: give how long, such as \"50ms\"");
    } else {
      fault.delay = reader.duration(json["delay"], place + ".delay");
    }
  }
  if (fault.kind == Kind::reorder && json.contains("hold")) {
    fault.hold = reader.duration(json["hold"], place + ".hold");
  }
  if (fault.kind == Kind::wrong_count && json.contains("count")) {
    const auto count = reader.whole(json["count"], place + ".count", 0, std::numeric_limits<std::int64_t>::max());
    if (count) fault.count = static_cast<std::uint64_t>(*count);
  }
}

void read_fault(PlanReader& reader, const Json& json, const std::string& place, NcclFault& fault) {
  if (!reader.is_mapping(json, place)) return;
  const std::vector<std::string>& kinds = kind_words();
  std::vector<std::string> given;
  for (const auto& [key, value] : json.items()) {
    if (key != "at" && key != "times" && key != "may_not_fire") given.push_back(key);
  }
  if (given.size() != 1) {
    return reader.mistake(place, fmt::format("a fault names exactly one kind, this one {}: give one of {}",
                                             given.size(), join(kinds, ", ")));
  }
  const auto kind = std::find(kinds.begin(), kinds.end(), given[0]);
  if (kind == kinds.end()) {
    const std::optional<std::string> meant = nearest(given[0], kinds);
    return reader.mistake(place,
                          fmt::format("the interposer cannot do `{}`{}: give one of {}, or remove this fault", given[0],
                                      meant ? fmt::format(" (did you mean `{}`?)", *meant) : "", join(kinds, ", ")));
  }
  fault.kind = static_cast<Kind>(kind - kinds.begin());
  read_options(reader, json[given[0]], fmt::format("{}.{}", place, given[0]), fault);
  if (!json.contains("at")) return reader.mistake(place, "`at` is missing: give at least {\"rank\": N}");
  read_at(reader, json["at"], place + ".at", fault.at);
  if (json.contains("times")) {
    fault.times = static_cast<std::uint64_t>(reader.whole(json["times"], place + ".times", 0).value_or(1));
  }
  if (json.contains("may_not_fire")) fault.may_not_fire = reader.truth(json["may_not_fire"], place + ".may_not_fire");
  const bool before_only = fault.kind == Kind::skip || fault.kind == Kind::reorder || fault.kind == Kind::wrong_count;
  if (before_only && fault.at.after) {
    reader.mistake(place + ".at.when", fmt::format("a {} changes the call itself, so it cannot come after it: "
                                                   "remove `when`",
                                                   to_string(fault.kind)));
  }
}

std::uint64_t digest_of(std::string_view text) {
  std::uint64_t digest = 0xcbf29ce484222325;  // FNV-1a: it tells plans of one folder apart, no more
  for (const char c : text) digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return digest;
}

// Parses, and refuses a key that stands twice in one mapping: the library would keep the last one without a word.
Json parse_strictly(std::string_view text, std::string& problem) {
  std::vector<std::set<std::string>> open;
  const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second && problem.empty()) {
      problem = fmt::format("the key {} stands twice in one mapping: remove one", parsed.dump());
    }
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::exception& exception) {
    problem = exception.what();
    return {};
  }
}

void read_root(PlanReader& reader, const Json& root, NcclPlan& plan) {
  if (!reader.is_mapping(root, "the file")) return;
  if (root.value("schema", Json()) != "firedrill.plan/1") {
    return reader.mistake("schema",
                          fmt::format("\"firedrill.plan/1\" is expected, not {}", root.value("schema", Json()).dump()));
  }
  if (!root.contains("faults"))
    return reader.mistake("the file", "`faults` is missing: give a list, which may be empty");
  const Json& faults = root["faults"];
  if (!faults.is_array()) return reader.mistake("faults", "a list is expected");
  if (faults.size() > fault_slot_count) {
    return reader.mistake("faults", fmt::format("{} faults; at most {} fit a ring: split the plan over several runs",
                                                faults.size(), fault_slot_count));
  }
  for (std::size_t i = 0; i < faults.size(); ++i) {
    read_fault(reader, faults[i], fmt::format("faults[{}]", i), plan.faults.emplace_back());
  }
}

}  // namespace

std::string describe(const NcclFault& fault) {
  const CallPattern& at = fault.at;
  std::string text = fmt::format("{} rank {} {} {} {}", to_string(fault.kind), at.rank, at.after ? "after" : "at",
                                 at.op                 ? to_string(*at.op)
                                 : at.collectives_only ? "collective"
                                                       : "call",
                                 at.nth);
  if (at.comm) text += fmt::format(" of communicator {}", *at.comm);
  if (!at.attempt) text += ", in any attempt";
  if (at.attempt && *at.attempt != 1) text += fmt::format(", in attempt {}", *at.attempt);
  if (fault.times == 0) text += ", without end";
  if (fault.times > 1) text += fmt::format(", {} times", fault.times);
  return text;
}

bool matches(const CallPattern& at, Op op, std::int32_t global_rank, std::uint32_t comm_number) {
  if (at.rank != global_rank || (at.comm && *at.comm != comm_number)) return false;
  return at.op ? *at.op == op : !at.collectives_only || is_collective(op);
}

Result<NcclPlan> nccl_plan_from_json(std::string_view text, const std::string& origin) {
  NcclPlan plan{.digest = digest_of(text)};
  std::string problem;
  const Json root = parse_strictly(text, problem);
  if (!problem.empty()) {
    return Error{.code = Code::invalid_input, .message = fmt::format("{}: {}", origin, problem), .hint = digest_hint()};
  }
  PlanReader reader(origin);
  read_root(reader, root, plan);
  if (!reader.mistakes().empty()) {
    return Error{.code = Code::invalid_input, .message = join(reader.mistakes(), "\n"), .hint = digest_hint()};
  }
  return plan;
}

Result<NcclPlan> read_nccl_plan(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text;
  if (stream) {
    text.resize(plan_bytes_max + 1);
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(stream.gcount()));
  }
  if (!stream.is_open() || stream.bad()) {
    return Error{.code = errno == ENOENT ? Code::not_found : Code::io_error,
                 .message = fmt::format("cannot read the plan {}: {}", file, std::strerror(errno)),
                 .hint = "FIREDRILL_PLAN names the plan.json of a run, as seen from the program's working directory"};
  }
  if (text.size() > plan_bytes_max) {
    return Error{.code = Code::invalid_input,
                 .message = fmt::format("{} is larger than {} bytes", file, plan_bytes_max),
                 .hint = digest_hint()};
  }
  return nccl_plan_from_json(text, file);
}

}  // namespace firedrill::interposer

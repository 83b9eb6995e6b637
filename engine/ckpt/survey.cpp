#include "engine/ckpt/survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "engine/base/text.h"
#include "engine/ckpt/agree.h"
#include "engine/ckpt/wire.h"

namespace firedrill {
namespace {

constexpr std::string_view seen_schema = "firedrill.seen/1";
constexpr std::size_t id_size = 8 + 4 + 4;

bool is_in(const std::vector<CheckpointId>& ids, const CheckpointId& id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

void write_ids(WireWriter& out, const std::vector<CheckpointId>& ids) {
  out.number(static_cast<std::uint32_t>(ids.size()));
  for (const CheckpointId& id : ids) {
    out.number(id.step);
    out.number(static_cast<std::int32_t>(id.attempt));
    out.number(static_cast<std::int32_t>(id.trial));
  }
}

std::vector<CheckpointId> read_ids(WireReader& in) {
  std::vector<CheckpointId> ids(in.count(id_size));
  for (CheckpointId& id : ids) {
    id.step = in.number<std::int64_t>();
    id.attempt = in.number<std::int32_t>();
    id.trial = in.number<std::int32_t>();
  }
  return ids;
}

void merge_ids(std::vector<CheckpointId>& into, const std::vector<CheckpointId>& more) {
  if (into == more) return;
  into.insert(into.end(), more.begin(), more.end());
  std::sort(into.begin(), into.end(), std::greater<>());
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

}  // namespace

Value encode_survey(int rank, const Survey& survey) {
  WireWriter out;
  out.number(word_of(rank, true));
  write_ids(out, survey.manifests);
  write_ids(out, survey.validated);
  write_ids(out, survey.rejected);
  write_ids(out, survey.tombstones);
  out.number(static_cast<std::uint32_t>(survey.claims.size()));
  for (const int claim : survey.claims) out.number(static_cast<std::int32_t>(claim));
  out.number(static_cast<std::uint32_t>(survey.seen.size()));
  for (const Survey::Seen& seen : survey.seen) {
    out.number(static_cast<std::int32_t>(seen.attempt));
    write_ids(out, seen.accepted);
  }
  return out.value();
}

Result<Survey> decode_survey(const Value& encoded) {
  WireReader in(encoded.text());
  Survey survey;
  in.number<std::uint64_t>();
  survey.manifests = read_ids(in);
  survey.validated = read_ids(in);
  survey.rejected = read_ids(in);
  survey.tombstones = read_ids(in);
  survey.claims.resize(in.count(4));
  for (int& claim : survey.claims) claim = in.number<std::int32_t>();
  survey.seen.resize(in.count(4 + 4));
  for (Survey::Seen& seen : survey.seen) {
    seen.attempt = in.number<std::int32_t>();
    seen.accepted = read_ids(in);
  }
  if (!in.at_end()) return Error{.code = Code::corrupted, .message = "a rank's listing is not whole"};
  return survey;
}

Result<Survey> union_of(std::span<const Survey> surveys) {
  Survey all;
  for (const Survey& survey : surveys) {
    merge_ids(all.manifests, survey.manifests);
    merge_ids(all.validated, survey.validated);
    merge_ids(all.rejected, survey.rejected);
    merge_ids(all.tombstones, survey.tombstones);
    all.claims.insert(all.claims.end(), survey.claims.begin(), survey.claims.end());
    for (const Survey::Seen& seen : survey.seen) {
      const auto at = std::lower_bound(all.seen.begin(), all.seen.end(), seen.attempt,
                                       [](const Survey::Seen& a, int attempt) { return a.attempt < attempt; });
      if (at == all.seen.end() || at->attempt != seen.attempt) {
        all.seen.insert(at, seen);
      } else if (at->accepted != seen.accepted) {
        return Error{.code = Code::mismatch,
                     .message = fmt::format("ranks read different contents of attempts/{}.seen", seen.attempt)};
      }
    }
  }
  std::sort(all.claims.begin(), all.claims.end());
  all.claims.erase(std::unique(all.claims.begin(), all.claims.end()), all.claims.end());
  return all;
}

Value encode_seen(const Survey::Seen& seen) {
  std::string text = fmt::format("{}\nattempt {}\n", seen_schema, seen.attempt);
  for (const CheckpointId& id : seen.accepted) {
    text += to_string(id);
    text += '\n';
  }
  text += fmt::format("digest {}\n", digest_of(text).hex());
  return Value::copy_of(text);
}

Result<Survey::Seen> parse_seen(std::string_view text) {
  const auto damaged = [](std::string_view what) {
    return Error{.code = Code::corrupted, .message = fmt::format("the record of an attempt's candidates: {}", what)};
  };
  constexpr std::string_view mark = "digest ";
  constexpr std::size_t tail = mark.size() + 32 + 1;
  if (text.size() < tail || text.back() != '\n') return damaged("it is not whole");
  const std::string_view body = text.substr(0, text.size() - tail);
  const std::string_view last = text.substr(body.size(), tail - 1);
  if (!last.starts_with(mark) || Digest::from_hex(last.substr(mark.size())) != digest_of(body)) {
    return damaged("its digest does not hold");
  }
  const std::vector<std::string_view> lines = split_in_place(body, '\n');
  if (lines.size() < 3 || lines[0] != seen_schema || !lines[1].starts_with("attempt ")) {
    return damaged("it does not begin as such a record does");
  }
  const auto attempt = parse_whole(lines[1].substr(8));
  if (!attempt || *attempt > INT32_MAX) return damaged("its attempt is not a number");
  Survey::Seen seen{.attempt = static_cast<int>(*attempt)};
  seen.accepted.reserve(lines.size() - 3);
  for (std::size_t i = 2; i + 1 < lines.size(); ++i) {
    const auto id = checkpoint_id_from(lines[i]);
    if (!id) return damaged(fmt::format("`{}` is no checkpoint", lines[i]));
    seen.accepted.push_back(*id);
  }
  return seen;
}

Status add_attempt(Survey& survey, std::string_view name, const std::function<Result<Value>()>& text) {
  constexpr std::string_view ending = ".seen";
  if (const auto claimed = parse_whole(name); claimed && *claimed <= INT32_MAX) {
    survey.claims.push_back(static_cast<int>(*claimed));
  }
  if (!name.ends_with(ending)) return {};
  const std::string_view number = name.substr(0, name.size() - ending.size());
  const auto attempt = parse_whole(number);
  if (!attempt || (number.front() == '0' && number.size() > 1)) return {};  // another spelling of the number
  FD_TRY(const Value record, text());
  auto seen = parse_seen(record.text());
  if (seen && seen->attempt != static_cast<int>(*attempt)) {
    return Error{.code = Code::corrupted,
                 .message = fmt::format("attempts/{} is the record of attempt {}", name, seen->attempt)};
  }
  if (!seen) {
    return Error{.code = seen.error().code,
                 .message = fmt::format("attempts/{}: {}", name, seen.error().message),
                 .hint = "without it nobody knows which checkpoints count: restore it, or move the directory away"};
  }
  survey.seen.push_back(*std::move(seen));
  return {};
}

void sort_attempts(Survey& survey) {
  std::sort(survey.claims.begin(), survey.claims.end());
  std::sort(survey.seen.begin(), survey.seen.end(),
            [](const Survey::Seen& a, const Survey::Seen& b) { return a.attempt < b.attempt; });
}

bool is_visible(const Survey& survey, const CheckpointId& id) {
  return std::all_of(survey.seen.begin(), survey.seen.end(), [&id](const Survey::Seen& seen) {
    return seen.attempt <= id.attempt || is_in(seen.accepted, id);
  });
}

std::vector<CheckpointId> lost_manifests(const Survey& survey) {
  std::vector<CheckpointId> lost;
  for (const CheckpointId& id : survey.validated) {
    if (!survey.manifests.empty() && id <= survey.manifests.front()) break;
    if (!is_in(survey.rejected, id) && !is_in(survey.tombstones, id) && is_visible(survey, id)) lost.push_back(id);
  }
  return lost;
}

}  // namespace firedrill

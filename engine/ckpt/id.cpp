#include "engine/ckpt/id.h"

#include <algorithm>
#include <array>
#include <functional>

namespace firedrill {
namespace {

constexpr std::size_t name_size_max = 128;

}  // namespace

std::string path_in(std::string_view directory, std::string_view name) {
  std::array<char, 128> short_path;  // most are that short: put together on the stack, a path costs one allocation
  const std::size_t size = directory.size() + 1 + name.size();
  if (size > short_path.size()) return std::string(directory).append("/").append(name);
  char* const end = std::copy(directory.begin(), directory.end(), short_path.data());
  *end = '/';
  std::copy(name.begin(), name.end(), end + 1);
  return {short_path.data(), size};
}

std::string path_in(std::string_view directory, const CheckpointId& id) { return path_in(directory, to_string(id)); }

std::string_view to_string(ShardKind kind) {
  switch (kind) {
    case ShardKind::model: return "model";
    case ShardKind::optimizer: return "optimizer";
    case ShardKind::extra: return "extra";
  }
  return "?";
}

std::string shard_name(ShardKind kind, int rank) {
  std::string name(to_string(kind));
  name.push_back('-');
  if (rank < 0 || rank >= 10) return name += std::to_string(rank);
  name.push_back(static_cast<char>('0' + rank));
  return name;
}

bool is_safe_name(std::string_view name) {
  const auto safe = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  return !name.empty() && name.size() <= name_size_max && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), safe);
}

std::vector<CheckpointId> ids_among(const std::vector<std::string>& names) {
  std::vector<CheckpointId> ids;
  ids.reserve(names.size());
  for (const std::string& name : names) {
    if (const auto id = checkpoint_id_from(name)) ids.push_back(*id);
  }
  std::sort(ids.begin(), ids.end(), std::greater<>());
  return ids;
}

}  // namespace firedrill

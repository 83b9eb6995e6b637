#include "engine/ckpt/id.h"

#include <algorithm>
#include <functional>

namespace firedrill {
namespace {

constexpr std::size_t name_size_max = 128;

}  // namespace

std::string path_in(std::string_view directory, std::string_view name) {
  std::string path;
  path.reserve(directory.size() + 1 + name.size());
  path.append(directory).push_back('/');
  path.append(name);
  return path;
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
  return name += std::to_string(rank);
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
  for (const std::string& name : names) {
    if (const auto id = checkpoint_id_from(name)) ids.push_back(*id);
  }
  std::sort(ids.begin(), ids.end(), std::greater<>());
  return ids;
}

}  // namespace firedrill

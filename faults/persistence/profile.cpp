#include "faults/persistence/profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "faults/persistence/rules.h"

namespace firedrill::crash {

namespace {

constexpr std::string_view profile_names[] = {"posix", "ext4", "nfs"};

}  // namespace

std::string_view to_string(ProfileKind kind) { return profile_names[static_cast<std::size_t>(kind)]; }

std::optional<ProfileKind> profile_kind_from(std::string_view name) {
  const auto* found = std::find(std::begin(profile_names), std::end(profile_names), name);
  if (found == std::end(profile_names)) return std::nullopt;
  return static_cast<ProfileKind>(found - std::begin(profile_names));
}

std::string describe(const ProfileOptions& options) {
  std::string text(to_string(options.kind));
  if (options.kind == ProfileKind::posix) text += options.atomic_rename ? ", rename atomic" : ", rename not atomic";
  if (options.kind == ProfileKind::posix && options.node_caches) text += ", caches per node";
  if (options.torn) text += ", torn";
  if (options.zeros) text += ", zeros";
  if (options.kind == ProfileKind::ext4 && options.replace_flushes) text += ", replace flushes";
  return text;
}

void add_rules(const Structure& structure, const ProfileOptions& options, Facts& facts) {
  switch (options.kind) {
    case ProfileKind::posix: return add_posix_rules(structure, options, facts);
    case ProfileKind::ext4: return add_ext4_rules(structure, options, facts);
    case ProfileKind::nfs: return add_nfs_rules(structure, options, facts);
  }
}

// On ext4 what a file gains reads as zeros where it is lost, since nothing lay there before; what it overwrites does
// not.
bool loss_reads_as_zeros(const ProfileOptions& options) { return options.zeros && options.kind != ProfileKind::ext4; }

void force_write(const Structure& structure, FactId cause, std::uint32_t write, Facts& facts) {
  const WriteItem& item = structure.writes[write];
  facts.implies(cause, facts.whole(write));
  const std::vector<SizeVersion>& sizes = structure.files.at(item.file).sizes;
  for (std::uint32_t v = 1; v < sizes.size(); ++v) {
    if (sizes[v].operation == item.operation && !sizes[v].carried) facts.implies(cause, facts.sized(item.file, v));
  }
}

void tie_renames(const Structure& structure, Facts& facts) {
  for (const Twins& twins : structure.renames) {
    // A node's death may have taken one half and left the other; then they are not tied any more.
    if (structure.names[twins.from_cell].versions[twins.from_version].lost_by ||
        structure.names[twins.to_cell].versions[twins.to_version].lost_by) {
      continue;
    }
    const FactId from = facts.named(twins.from_cell, twins.from_version);
    const FactId to = facts.named(twins.to_cell, twins.to_version);
    facts.implies(from, to);
    facts.implies(to, from);
  }
}

}  // namespace firedrill::crash

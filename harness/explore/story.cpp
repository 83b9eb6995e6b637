#include "harness/explore/story.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/explore/rereading.h"

namespace firedrill {
namespace {

using crash::Cell;
using crash::CellId;
using crash::CellKind;
using crash::CellValue;
using crash::CrashSpace;
using crash::OperationId;
using crash::ValueIndex;

using Assignment = Rereading::Assignment;

// The space in which the acknowledgement that asks for `required` has happened for certain: a state that is bad only
// because of it is bad only behind it.
std::unique_ptr<CrashSpace> behind_acknowledgement(const CrashSpace& space,
                                                   const std::optional<CheckpointId>& required) {
  if (!required) return nullptr;
  for (const OperationId id : space.acknowledgements()) {
    if (space.trace().operations[id].checkpoint != *required) continue;
    crash::SpaceOptions options = space.options();
    options.certain.push_back(id);
    auto built = CrashSpace::build(space.trace(), options);
    return built ? *std::move(built) : nullptr;
  }
  return nullptr;
}

bool assign_all(const CrashSpace& space, const Assignment& assignment, crash::Partial& partial) {
  for (const auto& [cell, value] : assignment) {
    const auto there = same_in(space, partial.space(), cell, value);
    if (!there || !partial.assign(there->first, there->second)) return false;
  }
  return true;
}

bool is_loss(std::string_view fate) {
  return fate.starts_with("lost") || fate.starts_with("torn") || fate.starts_with("zeros") ||
         fate.find("name lost") != std::string_view::npos;
}

void picture(crash::Partial& partial, const std::vector<OperationId>& certain, Story& story) {
  for (const crash::Fate& fate : partial.picture()) {
    const crash::Operation& operation = partial.space().trace().operations[fate.operation];
    const bool before = std::find(certain.begin(), certain.end(), fate.operation) != certain.end();
    if (before || operation.kind == crash::OperationKind::committed) continue;
    const bool of_file = operation.kind == crash::OperationKind::file;
    story.operations.push_back({.operation = describe(partial.space().trace(), fate.operation),
                                .fate = fate.what,
                                .kind = of_file ? std::string(to_string(operation.op)) : "",
                                .path = operation.path,
                                .second = operation.second,
                                .rank = partial.space().trace().programs[operation.program].rank});
    if (is_loss(fate.what)) ++story.losses;
  }
}

}  // namespace

std::optional<std::pair<CellId, ValueIndex>> same_in(const CrashSpace& from, const CrashSpace& to, CellId id,
                                                     ValueIndex index) {
  const Cell& cell = from.cell(id);
  const CellValue& value = cell.values[index];
  CellId there = 0;
  if (cell.kind == CellKind::name) {
    const auto named = to.name_cell(cell.inode, cell.name);
    if (!named) return std::nullopt;
    there = *named;
  } else {
    there = cell.kind == CellKind::size ? to.size_cell(cell.inode) : to.content_cell(cell.inode);
  }
  const auto& values = to.cell(there).values;
  for (ValueIndex i = 0; i < values.size(); ++i) {
    const bool same_bytes = !value.bytes || (values[i].bytes && values[i].bytes.digest() == value.bytes.digest());
    if (values[i].inode == value.inode && values[i].size == value.size && same_bytes) return std::pair(there, i);
  }
  return std::nullopt;
}

std::vector<std::string> Story::lines() const {
  std::vector<std::string> lines{
      fmt::format("violation: {}", what),
      fmt::format("the shortest way there: {} operations, {} of them lost or torn", operations.size(), losses)};
  for (const Line& line : operations) lines.push_back(fmt::format("  {:<24} {}", line.fate, line.operation));
  if (!disk.empty()) lines.emplace_back("what the recovery reads then:");
  for (const std::string& line : disk) lines.push_back("  " + line);
  return lines;
}

Story tell(const CrashSpace& space, const CheckSubject& subject, const Finding& finding) {
  Rereading rereading(space, finding.assignment);
  RestoreCheck check(subject);
  check.check(rereading.content());
  const Assignment read = rereading.read();
  Story story{.what = finding.what};
  for (const auto& [cell, value] : read) {
    if (space.cell(cell).values.size() > 1) story.disk.push_back(space.describe(cell, value));
  }
  if (const auto behind = behind_acknowledgement(space, finding.required)) {
    crash::Partial partial(*behind);
    if (assign_all(space, read, partial)) {
      picture(partial, space.options().certain, story);
      return story;
    }
  }
  crash::Partial partial(space);
  assign_all(space, read, partial);
  picture(partial, space.options().certain, story);
  return story;
}

Story tell_shortest(const CrashSpace& space, const CheckSubject& subject, const std::vector<Finding>& findings,
                    std::size_t tried) {
  FD_CHECK(!findings.empty(), "there is nothing to tell");
  std::optional<Story> shortest;
  for (std::size_t i = 0; i < std::min(tried, findings.size()); ++i) {
    Story story = tell(space, subject, findings[i]);
    const auto key = [](const Story& s) { return std::pair(s.operations.size(), s.losses); };
    if (!shortest || key(story) < key(*shortest)) shortest = std::move(story);
  }
  return *std::move(shortest);
}

}  // namespace firedrill

#include "harness/explore/second_loss.h"

#include <algorithm>

#include "faults/persistence/recorder.h"
#include "harness/explore/rereading.h"

namespace firedrill {
namespace {

// The entries of a base and, one for each, the node of the content that it was.
struct Walked {
  std::vector<crash::BaseEntry> base;
  std::vector<DiskContent::Node> nodes;
};

void add_below(DiskContent& content, DiskContent::Node directory, const std::string& path, Walked& walked) {
  std::vector<std::string> names;
  content.list(directory, names);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const DiskContent::Node node = content.child(directory, name);
    crash::BaseEntry entry{.path = path.empty() ? name : path + "/" + name, .kind = content.kind(node)};
    entry.inode = crash::root_inode + 1 + static_cast<crash::InodeId>(walked.base.size());
    if (entry.kind == FileKind::file) entry.bytes = content.read(node, 0, content.size(node));
    walked.base.push_back(entry);
    walked.nodes.push_back(node);
    if (entry.kind == FileKind::directory) add_below(content, node, entry.path, walked);
  }
}

Walked walk(DiskContent& content) {
  Walked walked;
  add_below(content, DiskContent::root, "", walked);
  return walked;
}

// What the first recovery did not read, in the numbers of the base.
Unread unread_in(const crash::CrashSpace& space, const std::vector<crash::CellId>& guessed, const Walked& walked) {
  Unread unread;
  for (const crash::CellId id : guessed) {
    const crash::Cell& cell = space.cell(id);
    const auto add = [&](DiskContent::Node node) {
      switch (cell.kind) {
        case crash::CellKind::name: unread.names.emplace(node, cell.name); break;
        case crash::CellKind::size: unread.sizes.insert(node); break;
        case crash::CellKind::content: unread.contents.insert(node); break;
      }
    };
    if (cell.inode == crash::root_inode) add(crash::root_inode);
    for (std::size_t i = 0; i < walked.nodes.size(); ++i) {
      if (walked.nodes[i] == cell.inode) add(walked.base[i].inode);
    }
  }
  return unread;
}

}  // namespace

FirstLoss FirstLoss::of(crash::Partial& leaf) {
  FirstLoss loss{.assignment = {}, .required = leaf.requirement()};
  for (std::size_t i = 0; i < leaf.depth(); ++i) loss.assignment.push_back(leaf.assignment(i));
  return loss;
}

std::vector<crash::BaseEntry> base_of(DiskContent& content) { return walk(content).base; }

Result<CrashCase> recovery_after(const crash::CrashSpace& space, const CheckSubject& subject, const FirstLoss& loss) {
  Rereading rereading(space, loss.assignment, Rereading::Known::at_once);
  // A file under two names would become two here; renames without atomicity leave them only in names that are not read.
  const Walked walked = walk(rereading.content());
  crash::Recorder recorder(walked.base);
  recorder.attempt_started(subject.attempt);
  RestoreCheck check(subject, {}, &recorder);
  const CheckAnswer& answer = check.check(rereading.content());
  if (!answer.restored && !answer.fresh) {
    return Error{.code = Code::internal,
                 .message = "a recovery that went well failed when repeated: " + answer.trouble};
  }
  return CrashCase{.trace = recorder.trace(),
                   .certain = {},
                   .attempts = subject.attempt,
                   .required = loss.required,
                   .unread = unread_in(space, rereading.guessed(), walked)};
}

}  // namespace firedrill

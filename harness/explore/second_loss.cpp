#include "harness/explore/second_loss.h"

#include <algorithm>

#include "faults/persistence/recorder.h"
#include "harness/explore/rereading.h"

namespace firedrill {
namespace {

void add_below(DiskContent& content, DiskContent::Node directory, const std::string& path,
               std::vector<crash::BaseEntry>& base) {
  std::vector<std::string> names;
  content.list(directory, names);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const DiskContent::Node node = content.child(directory, name);
    crash::BaseEntry entry{.path = path.empty() ? name : path + "/" + name, .kind = content.kind(node)};
    entry.inode = crash::root_inode + 1 + static_cast<crash::InodeId>(base.size());
    if (entry.kind == FileKind::file) entry.bytes = content.read(node, 0, content.size(node));
    base.push_back(entry);
    if (entry.kind == FileKind::directory) add_below(content, node, entry.path, base);
  }
}

}  // namespace

FirstLoss FirstLoss::of(crash::Partial& leaf) {
  FirstLoss loss{.assignment = {}, .required = leaf.requirement()};
  for (std::size_t i = 0; i < leaf.depth(); ++i) loss.assignment.push_back(leaf.assignment(i));
  return loss;
}

std::vector<crash::BaseEntry> base_of(DiskContent& content) {
  std::vector<crash::BaseEntry> base;
  add_below(content, DiskContent::root, "", base);
  return base;
}

Result<CrashCase> recovery_after(const crash::CrashSpace& space, const CheckSubject& subject, const FirstLoss& loss) {
  Rereading rereading(space, loss.assignment, Rereading::Known::at_once);
  // A file under two names would become two here; renames without atomicity leave them only in names that are not read.
  crash::Recorder recorder(base_of(rereading.content()));
  recorder.attempt_started(subject.attempt);
  RestoreCheck check(subject, {}, &recorder);
  const CheckAnswer& answer = check.check(rereading.content());
  if (!answer.restored && !answer.fresh) {
    return Error{.code = Code::internal,
                 .message = "a recovery that went well failed when repeated: " + answer.trouble};
  }
  return CrashCase{.trace = recorder.trace(), .certain = {}, .attempts = subject.attempt, .required = loss.required};
}

}  // namespace firedrill

// Probe: what discovery would find on a disk as it is now, and what the audit, an independent decoder, says of it.
// Asked after every operation that changes the disk; the answer for a view seen before is looked up by the view's
// digest.
//
// Threads: one. Errors: none; trouble is part of the answer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/ckpt/protocol.h"
#include "harness/audit/audit.h"
#include "harness/history/history.h"

namespace firedrill {

// Who is asked: the discovery of the engine under test (a mutant's, where there is one) for one run.
class Prober {
 public:
  // All must outlive the prober. It keeps answers, so it serves one protocol and one run identity only; an
  // auditor that serves several probers decodes a checkpoint once for all of them.
  Prober(std::unique_ptr<Protocol> protocol, const Job& job, const RunIdentity& identity, Tables& tables,
         Auditor* shared = nullptr)
      : protocol_(std::move(protocol)),
        job_(job),
        identity_(identity),
        tables_(tables),
        auditor_(shared == nullptr ? own_auditor_ : *shared) {}

  // Looks at the disk. Returns the index of the answer in the probe table.
  std::int64_t ask(FileSystem& files, Compute& compute, ProbeView view, const Auditor::ContentMark& mark = {});

  // The same, looked up by the digest of the view. `make_files` is called only for a view not seen before; 1 hit in
  // 10,000 is asked again, without marks, and compared, and a difference fails a check.
  template <class MakeFiles>
  std::int64_t ask(const Digest& view_digest, Compute& compute, ProbeView view, MakeFiles&& make_files,
                   const Auditor::ContentMark& mark = {}) {
    // Most operations change nothing of a view.
    Last& last = last_[static_cast<std::size_t>(view)];
    if (last.known && last.view == view_digest && (hits_ + 1) % recheck_every != 0) {
      ++hits_;
      return last.answer;
    }
    last.answer = look_up(view_digest, compute, view, make_files, mark);
    last.view = view_digest;
    last.known = true;
    return last.answer;
  }

 private:
  static constexpr std::uint64_t recheck_every = 10'000;

  // What is known of one content of the disk. Most trials ask for contents that earlier ones have had, in an order of
  // their own: a table of short rows costs one cache miss where a map of nodes costs three.
  struct Answers {
    Digest view;
    std::int32_t by_view[probe_view_count] = {unknown, unknown};
  };
  static constexpr std::int32_t unknown = -1;
  class AnswerTable {
   public:
    Answers& of(const Digest& view);

   private:
    std::size_t slot_of(const Digest& view) const;
    std::vector<Answers> slots_;  // open addressing; free while nothing is known
    std::size_t used_ = 0;
  };

  template <class MakeFiles>
  std::int64_t look_up(const Digest& view_digest, Compute& compute, ProbeView view, MakeFiles& make_files,
                       const Auditor::ContentMark& mark) {
    const auto own = static_cast<std::size_t>(view);
    Answers& known = answers_.of(view_digest);
    if (known.by_view[own] != unknown) {
      const std::int64_t answer = known.by_view[own];
      if (++hits_ % recheck_every == 0) recheck(answer, ask(*make_files(), compute, view));
      return answer;
    }
    // The two views are often of the same content, one behind the other.
    const std::int32_t other = known.by_view[1 - own];
    const std::int64_t answer = other != unknown ? as_seen_in(view, other) : ask(*make_files(), compute, view, mark);
    known.by_view[own] = static_cast<std::int32_t>(answer);
    return answer;
  }
  std::int64_t as_seen_in(ProbeView view, std::int64_t answer);
  void recheck(std::int64_t kept, std::int64_t fresh) const;

  std::unique_ptr<Protocol> protocol_;
  const Job& job_;
  const RunIdentity& identity_;
  Tables& tables_;
  WholeCandidates whole_;
  Auditor own_auditor_;
  Auditor& auditor_;
  AnswerTable answers_;
  std::vector<std::int32_t> other_view_;  // by answer: the same in the other view
  struct Last {
    Digest view;
    std::int64_t answer = 0;
    bool known = false;
  };
  Last last_[probe_view_count];
  std::uint64_t hits_ = 0;
};

}  // namespace firedrill

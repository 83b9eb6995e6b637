// Probe: what discovery would find on a disk as it is now, and what the audit, an independent decoder, says of it.
// Asked after every operation that changes the disk; the answer for a view seen before is looked up by the view's
// digest.
//
// Threads: one. Errors: none; trouble is part of the answer.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

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
  std::int64_t ask(FileSystem& files, Compute& compute, ProbeView view);

  // The same, looked up by the digest of the view. `make_files` is called only for a view not seen before; 1 hit in
  // 10,000 is asked again and compared, and a difference fails a check.
  template <class MakeFiles>
  std::int64_t ask(const Digest& view_digest, Compute& compute, ProbeView view, MakeFiles&& make_files) {
    // Most operations change nothing of a view.
    Last& last = last_[static_cast<std::size_t>(view)];
    if (last.known && last.view == view_digest && (hits_ + 1) % recheck_every != 0) {
      ++hits_;
      return last.answer;
    }
    last.answer = look_up(view_digest, compute, view, make_files);
    last.view = view_digest;
    last.known = true;
    return last.answer;
  }

 private:
  static constexpr std::uint64_t recheck_every = 10'000;

  template <class MakeFiles>
  std::int64_t look_up(const Digest& view_digest, Compute& compute, ProbeView view, MakeFiles& make_files) {
    auto& answers = answers_[static_cast<std::size_t>(view)];
    const auto known = answers.find(view_digest);
    if (known == answers.end()) {
      // The two views are often of the same content, one behind the other.
      const auto& others = answers_[1 - static_cast<std::size_t>(view)];
      const auto other = others.find(view_digest);
      const std::int64_t answer =
          other != others.end() ? as_seen_in(view, other->second) : ask(*make_files(), compute, view);
      answers.emplace(view_digest, answer);
      return answer;
    }
    if (++hits_ % recheck_every == 0) recheck(known->second, ask(*make_files(), compute, view));
    return known->second;
  }
  std::int64_t as_seen_in(ProbeView view, std::int64_t answer);
  void recheck(std::int64_t kept, std::int64_t fresh) const;

  std::unique_ptr<Protocol> protocol_;
  const Job& job_;
  const RunIdentity& identity_;
  Tables& tables_;
  Auditor own_auditor_;
  Auditor& auditor_;
  std::unordered_map<Digest, std::int64_t> answers_[probe_view_count];  // looked up only, never walked
  struct Last {
    Digest view;
    std::int64_t answer = 0;
    bool known = false;
  };
  Last last_[probe_view_count];
  std::uint64_t hits_ = 0;
};

}  // namespace firedrill

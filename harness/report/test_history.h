// For tests: a small history of two ranks. Rank 1 dies in step 2 of attempt 1; attempt 2 restores step 1 and ends with
// a tensor that is not the golden's.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "harness/history/history.h"

namespace firedrill {

class SmallRun {
 public:
  SmallRun() {
    golden(1, "after 1", {named("layers.0.weight", "w1"), named("layers.0.bias", "b1")});
    golden(2, "after 2", {named("layers.0.weight", "w2"), named("layers.0.bias", "b2")});
    add({.kind = EventKind::attempt_started, .attempt = 1, .a = 2, .name = text("dp=2")}, 0);
    spent(1, 0, 1, Phase::forward, 30, 100);
    spent(1, 0, 1, Phase::backward, 50, 100);
    step_done(1, 0, 1, "after 1", 100);
    add({.kind = EventKind::acknowledged, .rank = 0, .attempt = 1, .step = 1, .name = text("1-1-1")}, 150);
    add({.kind = EventKind::fault_fired,
         .phase = Phase::backward,
         .rank = 1,
         .attempt = 1,
         .step = 2,
         .name = text("kill rank 1 </script>")},
        200);
    add({.kind = EventKind::rank_ended, .rank = 1, .attempt = 1, .a = 2}, 200);
    add({.kind = EventKind::attempt_ended, .attempt = 1, .a = 1, .name = text("rank 1 died")}, 230);
    add({.kind = EventKind::attempt_started, .attempt = 2, .a = 2, .name = text("dp=2")}, 240);
    add({.kind = EventKind::message_taken, .rank = 0, .attempt = 2, .a = 1, .b = 2}, 250);
    add({.kind = EventKind::message_taken, .rank = 0, .attempt = 2, .a = 1, .b = 2}, 255);
    add({.kind = EventKind::exchanged,
         .rank = 0,
         .attempt = 2,
         .step = 2,
         .a = 640,
         .b = 7,
         .c = 3,
         .name = text("dp"),
         .detail = text("all_reduce")},
        260);
    add({.kind = EventKind::restored, .rank = 0, .attempt = 2, .step = 1, .name = text("1-1-1")}, 260);
    spent(2, 0, 2, Phase::forward, 40, 400);
    step_done(2, 0, 2, "wrong", 400, {named("layers.0.weight", "w2"), named("layers.0.bias", "odd")});
    add({.kind = EventKind::attempt_ended, .attempt = 2, .c = 2, .name = text("the job finished")}, 500);
    add({.kind = EventKind::run_ended, .attempt = 2, .a = 1, .b = 2, .name = text("the job finished")}, 500);
  }

  // `told`: when; the phases of a step end there.
  void spent(int attempt, std::int16_t rank, std::int64_t step, Phase phase, std::int64_t length, std::int64_t told) {
    add({.kind = EventKind::time_spent,
         .rank = rank,
         .attempt = attempt,
         .step = step,
         .a = length,
         .name = text(to_string(phase))},
        told);
  }

  Tables tables;
  History history{tables};

 private:
  static NamedDigest named(std::string_view name, std::string_view bytes) { return {name, digest_of(bytes)}; }
  NameId text(std::string_view words) { return tables.names.intern(words); }
  void add(Event event, std::int64_t time) {
    event.time = Time(time);
    history.append(event);
  }
  void golden(std::int64_t step, std::string_view state, std::initializer_list<NamedDigest> tensors) {
    tables.states.describe(digest_of(state), std::span(tensors.begin(), tensors.size()));
    add({.kind = EventKind::golden, .step = step, .digest = digest_of(state)}, 0);
  }
  void step_done(int attempt, std::int16_t rank, std::int64_t step, std::string_view state, std::int64_t time,
                 std::initializer_list<NamedDigest> tensors = {}) {
    if (tensors.size() > 0) tables.states.describe(digest_of(state), std::span(tensors.begin(), tensors.size()));
    add({.kind = EventKind::step_done, .rank = rank, .attempt = attempt, .step = step, .digest = digest_of(state)},
        time);
  }
};

}  // namespace firedrill

// Verdict: what a property says of a history. Three values; the evidence is for people and names the first violation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace firedrill {

enum class Outcome : std::uint8_t {
  pass,
  fail,
  unknown,  // could not be judged: something the property needs is missing, or the property itself broke
};
std::string_view to_string(Outcome outcome);

struct Verdict {
  Outcome outcome = Outcome::unknown;
  std::int64_t checked = 0;  // how often the property was tested; a pass with 0 is vacuous
  std::string evidence;

  bool vacuous() const { return outcome == Outcome::pass && checked == 0; }

  static Verdict pass(std::int64_t checked, std::string evidence = {}) {
    return {Outcome::pass, checked, std::move(evidence)};
  }
  static Verdict fail(std::int64_t checked, std::string evidence) {
    return {Outcome::fail, checked, std::move(evidence)};
  }
  static Verdict unknown(std::int64_t checked, std::string evidence) {
    return {Outcome::unknown, checked, std::move(evidence)};
  }
};

// "pass", "pass (vacuous)", "fail", "unknown".
std::string_view in_words(const Verdict& verdict);

}  // namespace firedrill

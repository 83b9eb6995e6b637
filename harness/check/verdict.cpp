#include "harness/check/verdict.h"

namespace firedrill {

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::pass: return "pass";
    case Outcome::fail: return "fail";
    case Outcome::unknown: return "unknown";
  }
  return "unknown";
}

std::string_view in_words(const Verdict& verdict) {
  return verdict.vacuous() ? std::string_view("pass (vacuous)") : to_string(verdict.outcome);
}

}  // namespace firedrill

#include "engine/train/rules.h"

namespace firedrill {

const TrainingRules& right_rules() {
  static const TrainingRules rules;
  return rules;
}

}  // namespace firedrill

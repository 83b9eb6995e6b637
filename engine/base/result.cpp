#include "engine/base/result.h"

namespace firedrill {

Failed::Failed(Error error) : error_(new Error(std::move(error))) {}

void Failed::forget(Error* error) noexcept { delete error; }

}  // namespace firedrill

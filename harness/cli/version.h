// Which build this is. The values are compiled into one small file, so that a new commit rebuilds nothing else.
#pragma once

#include <string_view>

namespace firedrill {

std::string_view version();
std::string_view commit();  // short hash, with "+" behind it if the tree had changes; "unknown" outside of git

}  // namespace firedrill

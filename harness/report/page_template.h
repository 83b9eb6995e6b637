// PageTemplate: the files of page/ as one HTML page, with the mark @DATA@ where its data go. Defined in a source that
// ci/cmake/Page.cmake writes.
#pragma once

#include <string_view>

namespace firedrill {

std::string_view page_template();

}  // namespace firedrill

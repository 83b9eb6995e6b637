// Page: a report, and where it was kept the history of its run, as one HTML page that needs nothing else: no network,
// no other file. The template is page.html, which is embedded when Firedrill is built; data goes in as JSON.
//
// Threads: pure function. Errors: none.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "harness/history/history.h"

namespace firedrill {

// `report`: as to_json(Report) wrote it. `history`: nullptr where none was kept.
std::string to_page(const nlohmann::ordered_json& report, const History* history);

}  // namespace firedrill

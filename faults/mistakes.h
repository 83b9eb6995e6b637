// Mistakes: messages as they are found. Each begins with the field it is about.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

namespace firedrill {

class Mistakes {
 public:
  template <class... Args>
  void add(fmt::format_string<Args...> text, Args&&... args) {
    found_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }
  std::vector<std::string> take() { return std::move(found_); }

 private:
  std::vector<std::string> found_;
};

}  // namespace firedrill

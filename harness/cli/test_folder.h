// For the tests of this folder: verbs that read and write files in a folder of the test's own.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "engine/model/numerics.h"

namespace firedrill {

class FolderTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { pin_numerics(); }
  FolderTest() {
    std::string name = (std::filesystem::temp_directory_path() / "firedrill-cli-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~FolderTest() override { std::filesystem::remove_all(folder_); }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  static std::string text_of(const std::filesystem::path& file) {
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }

  std::filesystem::path folder_;
};

}  // namespace firedrill

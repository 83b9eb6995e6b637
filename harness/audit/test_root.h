// A checkpoint root as the frozen example holds it, to be changed and audited.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "engine/sim/disk.h"
#include "harness/audit/audit.h"

namespace firedrill {

using Json = nlohmann::ordered_json;

inline constexpr CheckpointId frozen_id{.step = 2, .attempt = 1, .trial = 1};

inline std::string sealed(const Json& body) {
  std::string text = body.dump();
  text.back() = ',';
  return text + "\"digest\":\"" + digest_of(std::string_view(text)).hex() + "\"}\n";
}

// As text by path.
class Root {
 public:
  Root() {
    const std::filesystem::path frozen = "golden/format-1";
    for (const auto& entry : std::filesystem::recursive_directory_iterator(frozen)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      files[std::filesystem::relative(entry.path(), frozen).generic_string()] =
          std::string(std::istreambuf_iterator<char>(in), {});
    }
  }

  std::unique_ptr<sim::Disk> disk() const {
    auto disk = std::make_unique<sim::Disk>();
    const auto view = disk->files({});
    std::set<std::string> made;
    const std::function<void(const std::string&)> make = [&](const std::string& directory) {
      if (directory.empty() || !made.insert(directory).second) return;
      make(std::string(parent_path(directory)));
      EXPECT_TRUE(view->make_directory(directory));
    };
    for (const auto& [path, text] : files) {
      make(std::string(parent_path(path)));
      auto file = view->create(path);
      EXPECT_TRUE(file) << path;
      EXPECT_TRUE(text.empty() || (*file)->write(0, Value::copy_of(text)).ok());
    }
    return disk;
  }
  AuditReport audit() const {
    const auto on_disk = disk();
    const auto view = on_disk->files({});
    return audit_directory(*view);
  }

  std::string& manifest() { return files.at("manifests/2-1-1"); }
  std::string& shard(const std::string& name) { return files.at("shards/2-1-1/" + name); }
  // Changes the manifest and gives it the digest that it then must have.
  void change_manifest(const std::function<void(Json&)>& change) {
    Json body = Json::parse(manifest());
    body.erase("digest");
    change(body);
    manifest() = sealed(body);
  }
  // Changes a shard and writes its new digest and size into the manifest.
  void change_shard(const std::string& name, const std::function<void(std::string&)>& change) {
    change(shard(name));
    change_manifest([&](Json& body) {
      for (Json& entry : body["shards"]) {
        if (entry["name"] != name) continue;
        entry["size"] = shard(name).size();
        entry["digest"] = digest_of(std::string_view(shard(name))).hex();
      }
    });
  }

  std::map<std::string, std::string> files;
};

// Writes a number into a shard's header and gives the header the digest that it then must have.
template <class Number>
void put_in_header(std::string& shard, std::size_t offset, Number number) {
  shard.replace(offset, sizeof(number), reinterpret_cast<const char*>(&number), sizeof(number));
  std::uint32_t size = 0;
  std::memcpy(&size, shard.data() + 12, sizeof(size));
  const Digest digest = digest_of(std::string_view(shard).substr(0, size - 16));
  std::memcpy(shard.data() + size - 16, &digest.high, 8);
  std::memcpy(shard.data() + size - 8, &digest.low, 8);
}

}  // namespace firedrill

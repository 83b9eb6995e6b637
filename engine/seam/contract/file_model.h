// FileModel: what a file system holds, in the plainest way. Random operations on an implementation are held against it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/seam/file_system.h"

namespace firedrill {

class FileModel {
 public:
  FileModel() { directories_[""] = true; }

  // Each says whether the operation must succeed, and what is there behind it if so.
  bool create(const std::string& path) {
    if (taken(path) || !has_parent(path)) return false;
    files_[path] = "";
    return true;
  }
  bool make_directory(const std::string& path) {
    if (taken(path) || !has_parent(path)) return false;
    directories_[path] = true;
    return true;
  }
  void write(const std::string& path, std::size_t offset, const std::string& text) {
    std::string& content = files_[path];
    if (content.size() < offset + text.size()) content.resize(offset + text.size(), '\0');
    content.replace(offset, text.size(), text);
  }
  // Of files; directories are renamed by nobody while random operations run.
  bool rename(const std::string& from, const std::string& to) {
    if (!files_.contains(from) || directories_.contains(to) || !has_parent(to)) return false;
    std::string content = std::move(files_[from]);
    files_.erase(from);
    files_[to] = std::move(content);
    return true;
  }
  bool remove(const std::string& path) {
    if (files_.erase(path) > 0) return true;
    if (path.empty() || !directories_.contains(path) || !names_in(path).empty()) return false;
    directories_.erase(path);
    return true;
  }

  bool is_file(const std::string& path) const { return files_.contains(path); }
  const std::map<std::string, std::string>& files() const { return files_; }
  const std::map<std::string, bool>& directories() const { return directories_; }
  std::vector<std::string> names_in(const std::string& directory) const {
    std::map<std::string, bool> names;
    for (const auto& [path, content] : files_) add_name(names, directory, path);
    for (const auto& [path, there] : directories_) add_name(names, directory, path);
    std::vector<std::string> list;
    for (const auto& [name, there] : names) list.push_back(name);
    return list;
  }

 private:
  static void add_name(std::map<std::string, bool>& names, const std::string& directory, const std::string& path) {
    if (!path.empty() && parent_path(path) == directory) names[std::string(file_name(path))] = true;
  }
  bool taken(const std::string& path) const { return files_.contains(path) || directories_.contains(path); }
  bool has_parent(const std::string& path) const { return directories_.contains(std::string(parent_path(path))); }

  std::map<std::string, std::string> files_;
  std::map<std::string, bool> directories_;  // all there
};

}  // namespace firedrill

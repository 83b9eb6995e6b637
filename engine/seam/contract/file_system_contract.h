// The contract of engine/seam/file_system.h as a GoogleTest suite. Every implementation and every decorator runs it:
//
//   INSTANTIATE_TEST_SUITE_P(Sim, FileSystemContract, testing::Values(FileSystemSubject{"disk", with_fresh_disk}),
//                            [](const auto& info) { return info.param.name; });
//
// `with_fresh` calls the body once with an empty file system, on whatever thread or fiber its calls need. What is
// durable after a power loss cannot be asked through the seam; the implementations that know it test that themselves.
// To be included by one source file of a test program.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <rapidcheck.h>

#include "engine/seam/contract/file_model.h"
#include "engine/seam/file_system.h"

namespace firedrill {

struct FileSystemSubject {
  std::string name;
  std::function<void(const std::function<void(FileSystem&)>& body)> with_fresh;
  // With gtest's output; a std::function prints as bytes otherwise.
  friend std::ostream& operator<<(std::ostream& out, const FileSystemSubject& subject) { return out << subject.name; }
};

class FileSystemContract : public testing::TestWithParam<FileSystemSubject> {
 protected:
  using Names = std::vector<std::string>;

  void with_files(const std::function<void(FileSystem&)>& body) {
    bool ran = false;
    GetParam().with_fresh([&](FileSystem& files) {
      body(files);
      ran = true;
    });
    EXPECT_TRUE(ran) << "the subject never called the body, or a check failed in it";
  }
  static void make_file(FileSystem& files, std::string_view path, std::string_view text) {
    auto file = files.create(path);
    ASSERT_TRUE(file) << describe(file.error());
    ASSERT_TRUE((*file)->write(0, Value::copy_of(text)));
    ASSERT_TRUE((*file)->sync());
    ASSERT_TRUE((*file)->close());
  }
  static std::string text_of(FileSystem& files, std::string_view path) {
    auto file = files.open(path);
    if (!file) return "error: " + std::string(to_string(file.error().code));
    auto size = (*file)->size();
    if (!size) return "error: " + std::string(to_string(size.error().code));
    auto bytes = (*file)->read(0, *size);
    if (!bytes) return "error: " + std::string(to_string(bytes.error().code));
    return std::string(bytes->text());
  }
  static Names names_in(FileSystem& files, std::string_view directory) {
    auto names = files.list(directory);
    return names ? *names : Names{"error: " + std::string(to_string(names.error().code))};
  }
};

TEST_P(FileSystemContract, RootExistsAndIsEmpty) {
  with_files([](FileSystem& files) {
    auto info = files.stat("");
    ASSERT_TRUE(info) << describe(info.error());
    EXPECT_EQ(info->kind, FileKind::directory);
    EXPECT_EQ(info->size, 0);
    EXPECT_EQ(names_in(files, ""), Names{});
  });
}

TEST_P(FileSystemContract, ReadReturnsWhatWasWritten) {
  with_files([](FileSystem& files) {
    auto file = files.create("a");
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write(0, Value::copy_of("hello ")));
    ASSERT_TRUE((*file)->write(6, Value::copy_of("world")));
    auto own = (*file)->read(0, 100);
    ASSERT_TRUE(own) << "a created file is open for reading too";
    EXPECT_EQ(own->text(), "hello world");
    ASSERT_TRUE((*file)->close());
    EXPECT_EQ(text_of(files, "a"), "hello world");
  });
}

TEST_P(FileSystemContract, ReadGivesBytesInOneDimensionWhateverWasWritten) {
  with_files([](FileSystem& files) {
    auto file = files.create("a");
    ASSERT_TRUE(file);
    const std::vector<float> numbers = {1.5F, -2.0F};
    ASSERT_TRUE((*file)->write(0, Value::copy_of(std::span<const float>(numbers))));
    auto bytes = (*file)->read(0, 8);
    ASSERT_TRUE(bytes);
    EXPECT_EQ(bytes->dtype(), DType::u8);
    EXPECT_EQ(bytes->shape(), Shape{8});
    EXPECT_EQ(std::memcmp(bytes->bytes().data(), numbers.data(), 8), 0);
  });
}

TEST_P(FileSystemContract, ReadsInsideAcrossAndPastTheEndOfWrites) {
  with_files([](FileSystem& files) {
    auto file = files.create("a");
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write(0, Value::copy_of("0123")));
    ASSERT_TRUE((*file)->write(4, Value::copy_of("4567")));
    auto read = [&](std::int64_t offset, std::int64_t size) {
      auto bytes = (*file)->read(offset, size);
      return bytes ? std::string(bytes->text()) : std::string("error");
    };
    EXPECT_EQ(read(1, 2), "12");
    EXPECT_EQ(read(2, 4), "2345");
    EXPECT_EQ(read(6, 100), "67");
    EXPECT_EQ(read(8, 4), "");
    EXPECT_EQ(read(100, 4), "");
    EXPECT_EQ(read(3, 0), "");
  });
}

TEST_P(FileSystemContract, WriteReplacesARangeAndLeavesTheRest) {
  with_files([](FileSystem& files) {
    auto file = files.create("a");
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write(0, Value::copy_of("0123456789")));
    ASSERT_TRUE((*file)->write(3, Value::copy_of("abc")));
    ASSERT_TRUE((*file)->write(9, Value::copy_of("XY")));
    ASSERT_TRUE((*file)->write(0, Value::copy_of("_")));
    EXPECT_EQ(text_of(files, "a"), "_12abc678XY");
    auto size = (*file)->size();
    ASSERT_TRUE(size);
    EXPECT_EQ(*size, 11);
  });
}

TEST_P(FileSystemContract, AGapReadsAsZeros) {
  with_files([](FileSystem& files) {
    auto file = files.create("a");
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write(3, Value::copy_of("end")));
    EXPECT_EQ(text_of(files, "a"), std::string("\0\0\0end", 6));
  });
}

TEST_P(FileSystemContract, CreateIsExclusive) {
  with_files([](FileSystem& files) {
    make_file(files, "a", "old");
    EXPECT_TRUE(files.create("a").failed_with(Code::already_exists));
    EXPECT_EQ(text_of(files, "a"), "old");
    ASSERT_TRUE(files.make_directory("d"));
    EXPECT_TRUE(files.create("d").failed_with(Code::already_exists));
    EXPECT_TRUE(files.make_directory("d").failed_with(Code::already_exists));
    EXPECT_TRUE(files.make_directory("a").failed_with(Code::already_exists));
  });
}

TEST_P(FileSystemContract, MissingNamesAreNotFound) {
  with_files([](FileSystem& files) {
    EXPECT_TRUE(files.open("a").failed_with(Code::not_found));
    EXPECT_TRUE(files.stat("a").failed_with(Code::not_found));
    EXPECT_TRUE(files.list("a").failed_with(Code::not_found));
    EXPECT_TRUE(files.remove("a").failed_with(Code::not_found));
    EXPECT_TRUE(files.rename("a", "b").failed_with(Code::not_found));
    EXPECT_TRUE(files.create("d/a").failed_with(Code::not_found));
    EXPECT_TRUE(files.make_directory("d/e").failed_with(Code::not_found));
    EXPECT_TRUE(files.sync_directory("d").failed_with(Code::not_found));
    make_file(files, "a", "kept");
    EXPECT_TRUE(files.rename("a", "d/a").failed_with(Code::not_found));
    EXPECT_EQ(text_of(files, "a"), "kept");
  });
}

TEST_P(FileSystemContract, DirectoriesNestAndListSortedBytewise) {
  with_files([](FileSystem& files) {
    ASSERT_TRUE(files.make_directory("d"));
    ASSERT_TRUE(files.make_directory("d/e"));
    make_file(files, "d/b", "1");
    make_file(files, "d/Z", "22");
    make_file(files, "d/a-10", "");
    make_file(files, "d/a-9", "");
    make_file(files, "d/e/deep", "333");
    EXPECT_EQ(names_in(files, ""), Names{"d"});
    EXPECT_EQ(names_in(files, "d"), (Names{"Z", "a-10", "a-9", "b", "e"}));
    EXPECT_EQ(names_in(files, "d/e"), Names{"deep"});
    auto info = files.stat("d/Z");
    ASSERT_TRUE(info);
    EXPECT_EQ(info->kind, FileKind::file);
    EXPECT_EQ(info->size, 2);
    info = files.stat("d/e");
    ASSERT_TRUE(info);
    EXPECT_EQ(info->kind, FileKind::directory);
  });
}

TEST_P(FileSystemContract, RenameMovesAFile) {
  with_files([](FileSystem& files) {
    ASSERT_TRUE(files.make_directory("d"));
    make_file(files, "a", "text");
    ASSERT_TRUE(files.rename("a", "d/b"));
    EXPECT_EQ(names_in(files, ""), Names{"d"});
    EXPECT_EQ(text_of(files, "d/b"), "text");
  });
}

TEST_P(FileSystemContract, RenameReplacesAFile) {
  with_files([](FileSystem& files) {
    make_file(files, "a", "new");
    make_file(files, "b", "old and longer");
    ASSERT_TRUE(files.rename("a", "b"));
    EXPECT_EQ(names_in(files, ""), Names{"b"});
    EXPECT_EQ(text_of(files, "b"), "new");
  });
}

TEST_P(FileSystemContract, RenameOfADirectoryTakesItsContentsAlong) {
  with_files([](FileSystem& files) {
    ASSERT_TRUE(files.make_directory("d"));
    make_file(files, "d/a", "text");
    ASSERT_TRUE(files.rename("d", "e"));
    EXPECT_TRUE(files.stat("d/a").failed_with(Code::not_found));
    EXPECT_EQ(text_of(files, "e/a"), "text");
    EXPECT_EQ(names_in(files, "e"), Names{"a"});
  });
}

TEST_P(FileSystemContract, RemoveTakesFilesAndEmptyDirectoriesOnly) {
  with_files([](FileSystem& files) {
    ASSERT_TRUE(files.make_directory("d"));
    make_file(files, "d/a", "text");
    EXPECT_TRUE(files.remove("d").failed_with(Code::io_error)) << "the directory is not empty";
    EXPECT_EQ(text_of(files, "d/a"), "text");
    ASSERT_TRUE(files.remove("d/a"));
    EXPECT_TRUE(files.open("d/a").failed_with(Code::not_found));
    ASSERT_TRUE(files.remove("d"));
    EXPECT_EQ(names_in(files, ""), Names{});
  });
}

TEST_P(FileSystemContract, AnOpenFileOutlivesItsName) {
  with_files([](FileSystem& files) {
    make_file(files, "a", "first");
    auto file = files.open("a");
    ASSERT_TRUE(file);
    ASSERT_TRUE(files.remove("a"));
    make_file(files, "a", "second");
    auto bytes = (*file)->read(0, 100);
    ASSERT_TRUE(bytes);
    EXPECT_EQ(bytes->text(), "first");
    EXPECT_EQ(text_of(files, "a"), "second");
  });
}

TEST_P(FileSystemContract, AFileOpenedForReadingRefusesWrites) {
  with_files([](FileSystem& files) {
    make_file(files, "a", "text");
    auto file = files.open("a");
    ASSERT_TRUE(file);
    EXPECT_FALSE((*file)->write(0, Value::copy_of("TEXT")));
    EXPECT_EQ(text_of(files, "a"), "text");
    EXPECT_TRUE((*file)->sync()) << "recovery syncs files that it only reads";
  });
}

TEST_P(FileSystemContract, OpenAndListRefuseTheOtherKind) {
  with_files([](FileSystem& files) {
    ASSERT_TRUE(files.make_directory("d"));
    make_file(files, "a", "text");
    EXPECT_FALSE(files.open("d"));
    EXPECT_FALSE(files.list("a"));
    EXPECT_FALSE(files.create("a/b"));
  });
}

TEST_P(FileSystemContract, SyncsAndDropCacheKeepWhatIsThere) {
  with_files([](FileSystem& files) {
    ASSERT_TRUE(files.make_directory("d"));
    make_file(files, "d/a", "text");
    ASSERT_TRUE(files.sync_directory("d"));
    ASSERT_TRUE(files.sync_directory(""));
    ASSERT_TRUE(files.drop_cache("d/a"));
    EXPECT_EQ(text_of(files, "d/a"), "text");
    auto space = files.free_space();
    ASSERT_TRUE(space);
    EXPECT_GT(*space, 0);
  });
}

TEST_P(FileSystemContract, ALargeFileComesBackWhole) {
  with_files([](FileSystem& files) {
    std::string text(3'000'001, 'x');
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i * i % 23);
    make_file(files, "large", text);
    EXPECT_TRUE(text_of(files, "large") == text);
  });
}

// One random operation on both; says whether they agree about whether it succeeds.
inline void do_the_same(FileSystem& files, FileModel& model) {
  const std::vector<std::string> paths = {"a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "e", "e/b"};
  const std::string path = *rc::gen::elementOf(paths);
  switch (*rc::gen::inRange(0, 7)) {
    case 0: RC_ASSERT(files.create(path).ok() == model.create(path)); break;
    case 1: RC_ASSERT(files.make_directory(path).ok() == model.make_directory(path)); break;
    case 2: {
      const std::string to = *rc::gen::elementOf(paths);
      if (model.is_file(path)) RC_ASSERT(files.rename(path, to).ok() == model.rename(path, to));
      break;
    }
    case 3: RC_ASSERT(files.remove(path).ok() == model.remove(path)); break;
    case 4: RC_ASSERT(files.drop_cache(path).ok() || !model.is_file(path)); break;
    default: {  // a new file and writes into it, with gaps, on top of each other and synced or not
      if (!model.create(path)) break;
      auto file = files.create(path);
      RC_ASSERT(file.ok());
      for (int writes = *rc::gen::inRange(1, 4); writes > 0; --writes) {
        const auto offset = *rc::gen::inRange<std::size_t>(0, 40);
        const std::string text(*rc::gen::inRange<std::size_t>(1, 30), static_cast<char>('a' + writes));
        RC_ASSERT((*file)->write(static_cast<std::int64_t>(offset), Value::copy_of(text)).ok());
        model.write(path, offset, text);
        if (*rc::gen::element(false, true)) RC_ASSERT((*file)->sync().ok());
      }
      RC_ASSERT((*file)->close().ok());
    }
  }
}

TEST_P(FileSystemContract, RandomOperationsLeaveWhatAModelHolds) {
  const bool held = rc::check("files against a model", [&] {
    const int operations = *rc::gen::inRange(1, 40);
    GetParam().with_fresh([&](FileSystem& files) {
      FileModel model;
      for (int i = 0; i < operations; ++i) do_the_same(files, model);
      for (const auto& [directory, there] : model.directories()) {
        RC_ASSERT(names_in(files, directory) == model.names_in(directory));
      }
      for (const auto& [path, content] : model.files()) RC_ASSERT(text_of(files, path) == content);
    });
  });
  EXPECT_TRUE(held);
}

}  // namespace firedrill

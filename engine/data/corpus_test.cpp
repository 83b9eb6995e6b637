#include "engine/data/corpus.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace firedrill {
namespace {

namespace fs = std::filesystem;

class CorpusFiles : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::path(testing::TempDir()) / (std::string("firedrill_corpus_") + test->name());
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string write(const std::string& name, std::string_view text) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name, std::ios::binary) << text;
    return (root_ / name).string();
  }
  fs::path root_;
};

TEST_F(CorpusFiles, FileIsReadWholeWithItsDigest) {
  const std::string text(200'000, 'x');
  const Result<Corpus> corpus = load_corpus(write("text", text));
  ASSERT_TRUE(corpus);
  EXPECT_EQ(corpus->text.text(), text);
  EXPECT_EQ(corpus->digest, digest_of(text));
  EXPECT_EQ(corpus->files, 1);
}

TEST_F(CorpusFiles, DirectoryIsJoinedInBytewiseOrderOfPaths) {
  write("b", "2");
  write("B", "1");
  write("c/a", "4");
  write("c-", "3");  // '-' is before '/'
  write("d", "5");
  const Result<Corpus> corpus = load_corpus(root_.string());
  ASSERT_TRUE(corpus);
  EXPECT_EQ(corpus->text.text(), "12345");
  EXPECT_EQ(corpus->files, 5);
}

TEST_F(CorpusFiles, HiddenFilesAndLinksInADirectoryAreLeftOut) {
  write("a", "text");
  write(".hidden", "no");
  write(".git/config", "no");
  fs::create_symlink(root_ / "a", root_ / "b");
  const Result<Corpus> corpus = load_corpus(root_.string());
  ASSERT_TRUE(corpus);
  EXPECT_EQ(corpus->text.text(), "text");
}

TEST_F(CorpusFiles, LinkGivenAsThePathIsFollowed) {
  write("a", "text");
  fs::create_symlink(root_ / "a", root_ / "b");
  const Result<Corpus> corpus = load_corpus((root_ / "b").string());
  ASSERT_TRUE(corpus);
  EXPECT_EQ(corpus->text.text(), "text");
}

TEST_F(CorpusFiles, MissingPathIsNamed) {
  const Result<Corpus> corpus = load_corpus((root_ / "nothing").string());
  ASSERT_TRUE(corpus.failed_with(Code::not_found));
  EXPECT_NE(corpus.error().message.find((root_ / "nothing").string()), std::string::npos);
  EXPECT_FALSE(corpus.error().hint.empty());
}

TEST_F(CorpusFiles, NoTextAtAllIsAnError) {
  EXPECT_TRUE(load_corpus(root_.string()).failed_with(Code::invalid_input));
  EXPECT_TRUE(load_corpus(write("empty", "")).failed_with(Code::invalid_input));
  EXPECT_TRUE(load_corpus("/dev/null").failed_with(Code::invalid_input));
}

TEST_F(CorpusFiles, FailedReadIsAnErrorAndNotAnEnd) {
  // A regular file that opens and whose first byte cannot be read, whoever asks.
  if (!fs::is_regular_file("/proc/self/mem")) GTEST_SKIP() << "needs /proc";
  EXPECT_TRUE(load_corpus("/proc/self/mem").failed_with(Code::io_error));
}

TEST(Corpus, SplitKeepsTheEndForEvaluation) {
  const Corpus corpus = corpus_from("0123456789");
  const CorpusSplit whole = split_corpus(corpus, 0.0);
  EXPECT_EQ(whole.training.identity(), corpus.text.identity());
  EXPECT_EQ(whole.held_out.size(), 0U);
  const CorpusSplit split = split_corpus(corpus, 0.25);
  EXPECT_EQ(split.training.text(), "01234567");
  EXPECT_EQ(split.held_out.text(), "89");
}

}  // namespace
}  // namespace firedrill

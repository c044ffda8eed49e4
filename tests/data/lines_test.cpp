#include "polyhead/data/lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <random>

#include "data_files.h"
#include "polyhead/core/error.h"

namespace polyhead::data {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::string gzip(const std::string& bytes) {
  const TemporaryFile file("made.gz", "");
  gzFile out = gzopen(file.path().c_str(), "wb");
  gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(out);
  return file.bytes();
}

TEST(SplitLines, CutsAtNewlinesOnly) {
  EXPECT_THAT(split_lines("a\nb\n").lines, ElementsAre("a", "b"));
  EXPECT_THAT(split_lines("a\nb").lines, ElementsAre("a", "b"));
  EXPECT_THAT(split_lines("").lines, IsEmpty());
  EXPECT_THAT(split_lines("\n").lines, ElementsAre(""));
  EXPECT_THAT(split_lines("a\n\n\nb").lines, ElementsAre("a", "", "", "b"));
  EXPECT_THAT(split_lines("a\u2028b\u2029c\u0085d\n").lines, ElementsAre("a\u2028b\u2029c\u0085d"));
  EXPECT_THAT(split_lines("a\vb\fc\x1C"
                          "d\n")
                  .lines,
              ElementsAre("a b c d"));
}

TEST(SplitLines, AcceptsCrLf) {
  EXPECT_THAT(split_lines("a\r\nb\r\n").lines, ElementsAre("a", "b"));
  EXPECT_THAT(split_lines("a\r\n\r\nb\r").lines, ElementsAre("a", "", "b"));
  EXPECT_THAT(split_lines("a\rb\r\r\n").lines, ElementsAre("a b ")) << "only one is part of the line's end";
}

TEST(SplitLines, RemovesTheByteOrderMarkAtTheBeginningOnly) {
  EXPECT_THAT(split_lines("\uFEFFa\n\uFEFFb").lines, ElementsAre("a", "\uFEFFb"));
  EXPECT_THAT(split_lines("\uFEFF").lines, IsEmpty());
}

TEST(SplitLines, ControlCharactersBecomeSpaces) {
  EXPECT_THAT(split_lines(std::string_view("a\0b\tc\x01\x1F"
                                           "d\n",
                                           9))
                  .lines,
              ElementsAre("a b c  d"));
  EXPECT_EQ(split_lines(std::string_view("a\0b", 3)).repaired, 0);
}

TEST(SplitLines, RepairsAndCountsInvalidLines) {
  const Lines lines = split_lines("fine ß\nbad \xFF x\n\xED\xA0\x80\ncut \xE2\x82\n\xC3\n");
  EXPECT_THAT(lines.lines,
              ElementsAre("fine ß", "bad \uFFFD x", "\uFFFD\uFFFD\uFFFD", "cut \uFFFD", "\uFFFD"));
  EXPECT_EQ(lines.repaired, 4);
}

TEST(ReadLines, PlainAndGzip) {
  const std::string text = "\uFEFFein Satz\r\nund über";
  EXPECT_THAT(read_lines(TemporaryFile("plain.txt", text).path()).lines, ElementsAre("ein Satz", "und über"));
  EXPECT_THAT(read_lines(TemporaryFile("named.txt", gzip(text)).path()).lines,
              ElementsAre("ein Satz", "und über"))
      << "gzip is told by its magic number, not by the file's name";
  EXPECT_THAT(read_lines(TemporaryFile("plain.gz", text).path()).lines, ElementsAre("ein Satz", "und über"));
  EXPECT_THAT(read_lines(TemporaryFile("two.gz", gzip("a\nb") + gzip("c\n")).path()).lines,
              ElementsAre("a", "bc"));
  EXPECT_THAT(read_lines(TemporaryFile("empty.txt", "").path()).lines, IsEmpty());
  EXPECT_THAT(read_lines(TemporaryFile("empty.gz", gzip("")).path()).lines, IsEmpty());
}

TEST(ReadLines, LinesOfAnyLength) {
  const std::string line(5'000'000, 'x');
  const Lines lines = read_lines(TemporaryFile("long.gz", gzip(line + "\ny\n" + line)).path());
  ASSERT_EQ(lines.lines.size(), 3u);
  EXPECT_EQ(lines.lines[0], line);
  EXPECT_EQ(lines.lines[2], line);
}

TEST(ReadLines, NamesFilesThatCannotBeRead) {
  EXPECT_EQ(message_of<DataError>([] { read_lines("no/such.txt"); }),
            "data file no/such.txt: No such file or directory");
  EXPECT_EQ(message_of<DataError>([] { read_lines("."); }), "data file .: is a folder");
  EXPECT_EQ(message_of<DataError>([] { read_lines(""); }), "data file : No such file or directory");
}

TEST(ReadLines, EndsWhereTextDoesNot) {
  EXPECT_EQ(message_of<DataError>([] { read_bytes("/dev/zero", 5'000'000); }),
            "data file /dev/zero: more than 5000000 bytes of text");
  const TemporaryFile bomb("bomb.gz", gzip(std::string(5'000'000, 'a')));
  EXPECT_LT(bomb.bytes().size(), 10'000U);
  EXPECT_EQ(read_bytes(bomb.path(), 5'000'000).size(), 5'000'000U);
  EXPECT_EQ(message_of<DataError>([&] { read_bytes(bomb.path(), 4'999'999); }),
            "data file " + bomb.path() + ": more than 4999999 bytes of text");
  EXPECT_GT(most_text(), 100'000'000U);
}

TEST(ReadLines, NoticesTornGzip) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += std::to_string(i * 7919) + "\n";
  const std::string whole = gzip(text);
  for (std::size_t size = 2; size < whole.size(); size += 13) {
    const TemporaryFile file("torn.gz", whole.substr(0, size));
    EXPECT_EQ(message_of<DataError>([&] { read_lines(file.path()); }),
              "data file " + file.path() + ": the gzip data ends too early")
        << size;
  }
}

TEST(ReadLines, NoticesDamagedGzip) {
  std::string bytes = gzip(std::string(10'000, 'a') + "\nb\n");
  bytes[bytes.size() - 6] = static_cast<char>(~bytes[bytes.size() - 6]);
  const TemporaryFile file("damaged.gz", bytes);
  EXPECT_THAT(message_of<DataError>([&] { read_lines(file.path()); }),
              StartsWith("data file " + file.path() + ": damaged gzip data ("));
}

TEST(ReadLines, NoticesWhatFollowsGzip) {
  const std::string first = gzip("a\n"), second = gzip("b\n");
  for (const std::string& rest :
       {std::string("text"), "\x20" + second.substr(1), std::string(3, '\0') + "x"}) {
    const TemporaryFile file("followed.gz", first + rest);
    EXPECT_EQ(message_of<DataError>([&] { read_lines(file.path()); }),
              "data file " + file.path() + ": something that is no gzip follows the gzip data");
  }
  std::string damaged = second;
  damaged[1] = 'x';
  const TemporaryFile file("followed.gz", first + damaged);
  EXPECT_EQ(message_of<DataError>([&] { read_lines(file.path()); }),
            "data file " + file.path() + ": damaged gzip data (incorrect header check)");
  EXPECT_THAT(
      read_lines(TemporaryFile("padded.gz", first + std::string(1000, '\0') + second + '\0').path()).lines,
      ElementsAre("a", "b"));
}

TEST(ReadLines, ReadsGzipOfManyBlocks) {
  std::mt19937 random(1);
  std::string text(2'500'000, ' ');
  for (char& letter : text) letter = static_cast<char>('a' + random() % 23);
  const TemporaryFile file("blocks.gz", gzip(text) + gzip("\nb"));
  ASSERT_GT(file.bytes().size(), std::size_t{1} << 20U);
  EXPECT_EQ(read_bytes(file.path()), text + "\nb");
}

}  // namespace
}  // namespace polyhead::data

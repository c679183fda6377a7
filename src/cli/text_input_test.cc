#include "cli/text_input.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace winnow {
namespace {

// The reading end of a pipe that holds `text`.
int pipe_with(std::string_view text) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  EXPECT_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  close(ends[1]);
  return ends[0];
}

TEST(TextInput, WellFormedTextStaysAsItIs) {
  const std::string text("a\0\x01 \xC3\xA9 \xF0\x9F\x98\x80\r\n", 13);
  const Result<DecodedText> decoded = decode_text(text, "x");
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->text, text);
  EXPECT_EQ(decoded->replaced, 0u);
}

TEST(TextInput, IllFormedPartsAreReplacedAndCounted) {
  const Result<DecodedText> decoded = decode_text(
      "a\xFF"
      "b\xE2\x82"
      "c\xED\xA0\x80",
      "x");
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->text.substr(0, 9),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD"
            "c");
  EXPECT_GE(decoded->replaced, 3u);
}

TEST(TextInput, ByteOrderMarksAreDroppedOrRefused) {
  EXPECT_EQ(decode_text("\xEF\xBB\xBFhello", "x").value().text, "hello");
  for (const std::string_view mark : {"\xFF\xFEh", "\xFE\xFFh"}) {
    const Result<DecodedText> decoded = decode_text(std::string(mark), "notes.txt");
    ASSERT_FALSE(decoded.ok());
    EXPECT_EQ(decoded.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(decoded.error().message.find("notes.txt: expected UTF-8"), std::string::npos);
  }
}

TEST(TextInput, FilesThatCannotBeReadAreNamed) {
  const auto message = [](const std::string& path, ErrorCode code) {
    const Result<std::string> bytes = read_text_file(path, 0);
    EXPECT_FALSE(bytes.ok());
    EXPECT_EQ(bytes.error().code, code);
    return bytes.error().message;
  };
  EXPECT_NE(message("/nonexistent/a", ErrorCode::kNotFound).find("/nonexistent/a: expected"),
            std::string::npos);
  EXPECT_NE(message("/", ErrorCode::kNotFound).find("directory"), std::string::npos);
  EXPECT_NE(message("/dev/zero", ErrorCode::kUnsupported).find("device"), std::string::npos);
}

TEST(TextInput, ADashReadsStandardInput) {
  EXPECT_EQ(read_text_file("-", pipe_with("a\nb")).value(), "a\nb");
}

TEST(TextInput, LinesComeOneByOneAndTheLastNeedsNoEnd) {
  LineReader reader(pipe_with("one\r\n\ntwo\nlast"));
  std::string line;
  std::vector<std::string> lines;
  while (reader.next(line) == LineReader::Outcome::kLine) lines.push_back(line);
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "", "two", "last"}));
}

}  // namespace
}  // namespace winnow

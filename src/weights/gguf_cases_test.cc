// Small hand-made GGUF files after public fault reports: what must be refused, and what must be
// read.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/temp_folder.h"
#include "weights/gguf.h"

namespace winnow {
namespace {

struct FileCase {
  std::string name;
  std::string verdict;
  std::string words;
  std::vector<std::byte> file;
};

void PrintTo(const FileCase& file_case, std::ostream* out) { *out << file_case.name; }

std::vector<std::byte> bytes_from_base64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::byte> bytes;
  uint32_t bits = 0;
  int num_bits = 0;
  for (const char letter : text) {
    const size_t digit = digits.find(letter);
    if (digit == std::string::npos) break;  // "-" or padding
    bits = bits << 6 | static_cast<uint32_t>(digit);
    num_bits += 6;
    if (num_bits >= 8) {
      num_bits -= 8;
      bytes.push_back(static_cast<std::byte>(bits >> num_bits & 0xFF));
    }
  }
  return bytes;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

std::vector<FileCase> file_cases() {
  std::ifstream in(WINNOW_SOURCE_DIR "/tests/golden/gguf_cases.tsv");
  std::vector<FileCase> cases;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#')) continue;
    const std::vector<std::string> fields = split(line, '\t');
    cases.push_back({fields.at(0), fields.at(1), fields.at(2), bytes_from_base64(fields.at(3))});
  }
  return cases;
}

class GgufCases : public testing::TestWithParam<FileCase> {};

TEST_P(GgufCases, GetTheirVerdictFromDiskAndFromMemory) {
  const FileCase& file_case = GetParam();
  const test::TempFolder folder;
  const std::string path = folder.write("model.gguf", file_case.file);
  const auto mapped = GgufFile::open(path);
  const auto read = GgufFile::open(path, MapMode::kRead);
  ASSERT_EQ(mapped.ok(), read.ok());
  if (file_case.verdict != "reject") {
    EXPECT_TRUE(mapped.ok()) << mapped.error().message;
    return;
  }
  ASSERT_FALSE(mapped.ok());
  const std::string& message = mapped.error().message;
  EXPECT_EQ(message, read.error().message);
  EXPECT_NE(message.find("model.gguf"), std::string::npos) << message;
  for (const std::string& words : split(file_case.words, '|')) {
    EXPECT_NE(message.find(words), std::string::npos)
        << "'" << words << "' is missing in: " << message;
  }
  if (!file_case.file.empty()) {
    const auto from_memory = GgufFile::open_bytes(file_case.file, path);
    ASSERT_FALSE(from_memory.ok());
    EXPECT_EQ(from_memory.error().message, message);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GgufCases, testing::ValuesIn(file_cases()),
                         [](const auto& test_info) {
                           std::string name = test_info.param.name;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

std::unique_ptr<GgufFile> open_case(const std::string& name) {
  for (FileCase& file_case : file_cases()) {
    if (file_case.name == name)
      return std::move(GgufFile::open_bytes(std::move(file_case.file), name)).value();
  }
  return nullptr;
}

std::vector<float> floats_of(const GgufFile& file, std::string_view tensor_name) {
  const TensorInfo* tensor = file.find(tensor_name);
  if (tensor == nullptr) return {};
  std::vector<float> values(static_cast<size_t>(tensor->num_bytes) / sizeof(float));
  std::memcpy(values.data(), tensor->data, values.size() * sizeof(float));
  return values;
}

TEST(GgufValues, AlignmentMovesDataAndOffsets) {
  const auto file = open_case("gguf-align-64");
  EXPECT_EQ(floats_of(*file, "a"), (std::vector<float>{1, 2}));
  EXPECT_EQ(floats_of(*file, "b"), (std::vector<float>{3, 4, 5, 6}));
  EXPECT_EQ(file->find("b")->dims, (std::vector<int64_t>{2, 2}));
}

TEST(GgufValues, Version2AndATailBehindTheDataAreRead) {
  for (const char* name : {"gguf-v2", "gguf-tail", "gguf-kvtypes"}) {
    SCOPED_TRACE(name);
    const auto file = open_case(name);
    EXPECT_EQ(floats_of(*file, "t"), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
  }
  EXPECT_EQ(open_case("gguf-v2")->version(), 2);
  EXPECT_EQ(open_case("gguf-tail")->version(), 3);
}

TEST(GgufValues, EveryMetadataTypeKeepsItsValue) {
  const auto file = open_case("gguf-kvtypes");
  const auto expect = [&](const char* key, const MetadataValue& want) {
    const MetadataValue* value = file->metadata().find(key);
    ASSERT_NE(value, nullptr) << key;
    EXPECT_EQ(*value, want) << key;
  };
  expect("x.u8", int64_t{255});
  expect("x.i8", int64_t{-1});
  expect("x.u16", int64_t{65535});
  expect("x.i16", int64_t{-2});
  expect("x.i32", int64_t{-3});
  expect("x.u64", int64_t{1} << 40);
  expect("x.i64", int64_t{-4});
  expect("x.f64", 1e-6);
  expect("x.bool", true);
  expect("x.ab", std::vector<bool>{true, false});
  expect("x.empty", std::vector<std::string>{});
  expect("x.i64s", std::vector<int64_t>{1, -1});
  expect("x.str", std::string("\xFF\0z", 3));
}

}  // namespace
}  // namespace winnow

// Models in several files: the parts are found, held against each other and read as one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "support/gguf_builder.h"
#include "support/temp_folder.h"
#include "weights/gguf.h"

namespace winnow {
namespace {

using test::Bytes;
using test::GgufBuilder;

constexpr int kNumTensors = 7;

std::string tensor_name(int idx) { return "blk." + std::to_string(idx) + ".weight"; }

std::vector<float> tensor_values(int idx) {
  std::vector<float> values(8);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(idx * 100 + static_cast<int>(i));
  return values;
}

std::string part_name(size_t part_idx, size_t num_parts) {
  char name[40];
  std::snprintf(name, sizeof(name), "m-%05zu-of-%05zu.gguf", part_idx + 1, num_parts);
  return name;
}

// Three parts of 3, 3 and 1 tensors; the metadata is all in the first.
std::vector<GgufBuilder> sound_parts() {
  std::vector<GgufBuilder> parts(3);
  parts[0].text("general.architecture", "llama").number("llama.block_count", uint32_t{7});
  for (size_t part_idx = 0; part_idx < parts.size(); ++part_idx) {
    parts[part_idx].number("split.no", static_cast<uint16_t>(part_idx));
    parts[part_idx]
        .number("split.count", uint16_t{3})
        .number("split.tensors.count", int32_t{kNumTensors});
  }
  for (int idx = 0; idx < kNumTensors; ++idx) {
    parts[static_cast<size_t>(idx) / 3].floats(tensor_name(idx), {4, 2}, tensor_values(idx));
  }
  return parts;
}

std::string write_parts(const test::TempFolder& folder, const std::vector<GgufBuilder>& parts) {
  for (size_t idx = 0; idx < parts.size(); ++idx)
    folder.write(part_name(idx, parts.size()), parts[idx].build());
  return folder.path(part_name(0, parts.size()));
}

void expect_refused(const std::string& path, ErrorCode code,
                    const std::vector<std::string>& words) {
  const auto file = GgufFile::open(path);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, code) << file.error().message;
  for (const std::string& word : words) {
    EXPECT_NE(file.error().message.find(word), std::string::npos)
        << word << " in: " << file.error().message;
  }
}

TEST(GgufSplit, TheFirstPartOpensTheWholeModel) {
  const test::TempFolder folder;
  for (const MapMode mode : {MapMode::kMapOrRead, MapMode::kRead}) {
    const auto file = GgufFile::open(write_parts(folder, sound_parts()), mode);
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_EQ((*file)->num_parts(), 3);
    EXPECT_EQ((*file)->metadata().integer("llama.block_count", 0, 100).value(), 7);
    ASSERT_EQ((*file)->tensors().size(), size_t{kNumTensors});
    uint64_t file_bytes = 0;
    for (size_t idx = 0; idx < 3; ++idx)
      file_bytes += std::filesystem::file_size(folder.path(part_name(idx, 3)));
    EXPECT_EQ((*file)->file_bytes(), file_bytes);
    for (int idx = 0; idx < kNumTensors; ++idx) {
      const TensorInfo* tensor = (*file)->find(tensor_name(idx));
      ASSERT_NE(tensor, nullptr) << tensor_name(idx);
      const std::vector<float> want = tensor_values(idx);
      const auto* values = reinterpret_cast<const float*>(tensor->data);
      EXPECT_TRUE(std::equal(values, values + 8, want.begin())) << tensor_name(idx);
    }
  }
}

TEST(GgufSplit, AFirstPartMayHoldNoTensors) {
  const test::TempFolder folder;
  std::vector<GgufBuilder> parts = sound_parts();
  for (auto& tensor : parts[0].tensors) parts[1].tensors.push_back(tensor);
  parts[0].tensors.clear();
  const auto file = GgufFile::open(write_parts(folder, parts));
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ((*file)->tensors().size(), size_t{kNumTensors});
}

TEST(GgufSplit, AnotherPartIsRefusedAndTheFirstOneNamed) {
  const test::TempFolder folder;
  write_parts(folder, sound_parts());
  expect_refused(folder.path(part_name(1, 3)), ErrorCode::kInvalidArgument,
                 {"m-00002-of-00003.gguf", "part 2 of 3", "m-00001-of-00003.gguf"});
  expect_refused(folder.path(part_name(2, 3)), ErrorCode::kInvalidArgument,
                 {"part 3 of 3", "m-00001-of-00003.gguf"});
}

TEST(GgufSplit, AMissingPartIsNamed) {
  for (size_t missing = 1; missing < 3; ++missing) {
    const test::TempFolder folder;
    const std::string first = write_parts(folder, sound_parts());
    std::filesystem::remove(folder.path(part_name(missing, 3)));
    expect_refused(first, ErrorCode::kNotFound, {part_name(missing, 3), "of 3"});
  }
}

TEST(GgufSplit, PartsThatDisagreeAreRefused) {
  struct Disagreement {
    const char* key;
    std::optional<int> value;
    std::vector<std::string> words;
  };
  const Disagreement disagreements[] = {
      {"split.count", 2, {"m-00002-of-00003.gguf", "split.count", "expected 3", "found 2"}},
      {"split.count", std::nullopt, {"m-00002-of-00003.gguf", "split.count", "found 1"}},
      {"split.no", 2, {"m-00002-of-00003.gguf", "split.no", "expected 1", "found 2"}},
      {"split.no", 0, {"m-00002-of-00003.gguf", "split.no", "expected 1", "found 0"}},
      {"split.tensors.count",
       8,
       {"m-00002-of-00003.gguf", "split.tensors.count", "expected 7", "found 8"}},
      {"split.tensors.count", std::nullopt, {"split.tensors.count", "expected 7", "found nothing"}},
  };
  for (const Disagreement& disagreement : disagreements) {
    const test::TempFolder folder;
    std::vector<GgufBuilder> parts = sound_parts();
    parts[1].remove(disagreement.key);
    if (disagreement.value) parts[1].number(disagreement.key, int32_t{*disagreement.value});
    expect_refused(write_parts(folder, parts), ErrorCode::kCorruptFile, disagreement.words);
  }
}

TEST(GgufSplit, AWrongNumberOfTensorsIsRefused) {
  const test::TempFolder folder;
  std::vector<GgufBuilder> parts = sound_parts();
  parts[2].tensors.clear();
  expect_refused(write_parts(folder, parts), ErrorCode::kCorruptFile,
                 {"expected 7 tensors", "found 6"});
}

TEST(GgufSplit, ATensorInTwoPartsIsRefused) {
  const test::TempFolder folder;
  std::vector<GgufBuilder> parts = sound_parts();
  parts[2].tensors[0].name = tensor_name(0);
  expect_refused(write_parts(folder, parts), ErrorCode::kCorruptFile,
                 {"'blk.0.weight'", "found in two"});
}

TEST(GgufSplit, ATensorMoreInTwoPartsIsNamedBeforeTheCount) {
  const test::TempFolder folder;
  std::vector<GgufBuilder> parts = sound_parts();
  parts[2].floats(tensor_name(0), {2}, {1, 2});
  expect_refused(write_parts(folder, parts), ErrorCode::kCorruptFile,
                 {"'blk.0.weight'", "found in two"});
}

TEST(GgufSplit, PartsJoinedByConcatenationAreRefusedWithAHint) {
  const test::TempFolder folder;
  Bytes joined;
  for (const GgufBuilder& part : sound_parts()) {
    const Bytes bytes = part.build();
    joined.insert(joined.end(), bytes.begin(), bytes.end());
  }
  expect_refused(folder.write("joined.gguf", joined), ErrorCode::kCorruptFile,
                 {"split into 3", "concatenation"});
}

TEST(GgufSplit, ADamagedPartIsNamed) {
  const test::TempFolder folder;
  const std::string first = write_parts(folder, sound_parts());
  std::filesystem::resize_file(folder.path(part_name(2, 3)),
                               std::filesystem::file_size(folder.path(part_name(2, 3))) - 1);
  expect_refused(first, ErrorCode::kCorruptFile, {"m-00003-of-00003.gguf", "truncated"});
}

TEST(GgufSplit, ACountOfZeroOrOneIsAnOrdinaryFile) {
  for (const int count : {0, 1}) {
    GgufBuilder model;
    model.number("split.count", count).floats("t", {2}, {1, 2});
    EXPECT_TRUE(GgufFile::open_bytes(model.build(), "single").ok());
  }
}

}  // namespace
}  // namespace winnow

// A sound file changed in one place: numbers stored in other types, and the real model cut, split
// and patched.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <type_traits>
#include <vector>

#include "support/gguf_builder.h"
#include "support/real_models.h"
#include "support/temp_folder.h"
#include "weights/gguf.h"

namespace winnow {
namespace {

using test::GgufBuilder;

template <class T>
class GgufNumberWidth : public testing::Test {};
using Widths = testing::Types<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t,
                              int64_t, float, double>;
TYPED_TEST_SUITE(GgufNumberWidth, Widths);

TYPED_TEST(GgufNumberWidth, ACountIsTheSameInEveryWidth) {
  GgufBuilder model;
  model.number("llama.block_count", TypeParam{30});
  const auto file = GgufFile::open_bytes(model.build(), "widths");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ((*file)->metadata().integer("llama.block_count", 1, 100).value(), 30);
  EXPECT_EQ((*file)->metadata().number("llama.block_count", 0, 100).value(), 30.0);
  EXPECT_EQ((*file)->metadata().integers("llama.block_count", 2, 1, 100).value(),
            (std::vector<int64_t>{30, 30}));
}

TYPED_TEST(GgufNumberWidth, AnArrayIsTheSameInEveryWidthOfItsKind) {
  GgufBuilder model;
  model.array("types", std::vector<TypeParam>{1, 3, 127});
  const auto file = GgufFile::open_bytes(model.build(), "widths");
  ASSERT_TRUE(file.ok()) << file.error().message;
  if constexpr (std::is_floating_point_v<TypeParam>) {
    EXPECT_EQ(*(*file)->metadata().number_array("types").value(), (std::vector<double>{1, 3, 127}));
  } else {
    EXPECT_EQ(*(*file)->metadata().integer_array("types").value(),
              (std::vector<int64_t>{1, 3, 127}));
  }
}

TEST(GgufNumbers, ANegativeCountIsRefusedByItsKey) {
  GgufBuilder model;
  model.number("llama.block_count", int32_t{-30});
  const auto file = GgufFile::open_bytes(model.build(), "negative");
  const auto count = (*file)->metadata().integer("llama.block_count", 1, 1000);
  ASSERT_FALSE(count.ok());
  EXPECT_NE(count.error().message.find("'llama.block_count'"), std::string::npos);
}

// SmolLM2 as fetched by tools/get_models, copied so that it can be changed.
class RealGguf : public testing::Test {
 protected:
  void SetUp() override {
    source_ = test::model_path("smollm2-135m-instruct-q4_1.gguf");
    SKIP_WITHOUT_MODEL(source_);
  }

  std::string copy() const {
    const std::string path = folder_.path("copy.gguf");
    std::filesystem::copy_file(source_, path, std::filesystem::copy_options::overwrite_existing);
    return path;
  }

  std::unique_ptr<GgufFile> open_source() const {
    return std::move(GgufFile::open(source_)).value();
  }

  static void expect_same_tensors(const GgufFile& got, const GgufFile& want) {
    ASSERT_EQ(got.tensors().size(), want.tensors().size());
    for (const TensorInfo& tensor : want.tensors()) {
      const TensorInfo* found = got.find(tensor.name);
      ASSERT_NE(found, nullptr) << tensor.name;
      EXPECT_EQ(found->dims, tensor.dims) << tensor.name;
      ASSERT_EQ(found->num_bytes, tensor.num_bytes) << tensor.name;
      const size_t num_bytes = static_cast<size_t>(tensor.num_bytes);
      EXPECT_EQ(std::memcmp(found->data, tensor.data, num_bytes), 0) << tensor.name;
    }
  }

  std::string source_;
  test::TempFolder folder_;
};

TEST_F(RealGguf, Version2IsReadLikeVersion3) {
  const std::string path = copy();
  std::fstream patch(path, std::ios::in | std::ios::out | std::ios::binary);
  patch.seekp(4).write("\2\0\0\0", 4);
  patch.close();
  const auto file = GgufFile::open(path);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ((*file)->version(), 2);
  expect_same_tensors(**file, *open_source());
}

TEST_F(RealGguf, ACutFileIsRefusedAtLoad) {
  const std::string path = copy();
  const uintmax_t whole = std::filesystem::file_size(path);
  for (const uintmax_t size : {whole - 1, whole / 2}) {
    std::filesystem::resize_file(path, size);
    const auto file = GgufFile::open(path);
    ASSERT_FALSE(file.ok()) << size;
    EXPECT_EQ(file.error().code, ErrorCode::kCorruptFile);
    EXPECT_NE(file.error().message.find("tensor '"), std::string::npos) << file.error().message;
    EXPECT_NE(file.error().message.find(std::to_string(size)), std::string::npos)
        << file.error().message;
  }
}

TEST_F(RealGguf, AFileThatShrinksAfterOpeningIsNoticed) {
  const std::string path = copy();
  const auto file = GgufFile::open(path);
  ASSERT_TRUE((*file)->check_unchanged().ok());
  std::filesystem::resize_file(path, 1000000);
  const Status status = (*file)->check_unchanged();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("found 1000000"), std::string::npos)
      << status.error().message;
}

TEST_F(RealGguf, SplitIntoThreePartsItIsTheSameModel) {
  const auto source = open_source();
  const GgufBuilder whole = GgufBuilder::copy_of(*source);
  const size_t ends[] = {100, 200, whole.tensors.size()};
  size_t begin = 0;
  for (uint16_t part_idx = 0; part_idx < 3; ++part_idx) {
    GgufBuilder part;
    if (part_idx == 0) part.entries = whole.entries;
    part.tensors.assign(whole.tensors.begin() + static_cast<ptrdiff_t>(begin),
                        whole.tensors.begin() + static_cast<ptrdiff_t>(ends[part_idx]));
    part.number("split.no", part_idx).number("split.count", uint16_t{3});
    part.number("split.tensors.count", static_cast<int32_t>(whole.tensors.size()));
    folder_.write("m-0000" + std::to_string(part_idx + 1) + "-of-00003.gguf", part.build());
    begin = ends[part_idx];
  }
  const auto file = GgufFile::open(folder_.path("m-00001-of-00003.gguf"));
  ASSERT_TRUE(file.ok()) << file.error().message;
  expect_same_tensors(**file, *source);
  for (const auto& [key, value] : source->metadata().entries()) {
    ASSERT_TRUE((*file)->metadata().has(key)) << key;
    EXPECT_EQ(*(*file)->metadata().find(key), value) << key;
  }
}

}  // namespace
}  // namespace winnow

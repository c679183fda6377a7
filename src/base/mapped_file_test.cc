#include "base/mapped_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/mapped_ranges.h"
#include "support/temp_folder.h"

namespace winnow {
namespace {

std::vector<std::byte> numbered_bytes(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t idx = 0; idx < size; ++idx) bytes[idx] = static_cast<std::byte>(idx * 7 & 0xFF);
  return bytes;
}

TEST(MappedFile, MappingAndReadingGiveTheSameBytes) {
  const test::TempFolder folder;
  for (const size_t size : {size_t{1}, size_t{4095}, size_t{4096}, size_t{4097}, size_t{100001}}) {
    const std::vector<std::byte> want = numbered_bytes(size);
    const std::string path = folder.write("file", want);
    const auto mapped = MappedFile::open(path);
    const auto read = MappedFile::open(path, MapMode::kRead);
    ASSERT_TRUE(mapped.ok() && read.ok());
    EXPECT_TRUE(mapped->is_mapped());
    EXPECT_FALSE(read->is_mapped());
    EXPECT_TRUE(std::ranges::equal(mapped->bytes(), want));
    EXPECT_TRUE(std::ranges::equal(read->bytes(), want));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(read->bytes().data()) % 64, 0u);
  }
}

TEST(MappedFile, MovingKeepsTheBytesWhereTheyAre) {
  const test::TempFolder folder;
  auto file = MappedFile::open(folder.write("file", numbered_bytes(100)));
  const std::byte* data = file->bytes().data();
  const MappedFile moved = std::move(file).value();
  EXPECT_EQ(moved.bytes().data(), data);
  EXPECT_EQ(moved.bytes()[1], static_cast<std::byte>(7));
}

TEST(MappedFile, AFileShortenedWhileMappedIsNoticedBeforeItIsTouched) {
  const test::TempFolder folder;
  const std::string path = folder.write("file", numbered_bytes(100000));
  const auto mapped = MappedFile::open(path);
  const auto read = MappedFile::open(path, MapMode::kRead);
  EXPECT_TRUE(mapped->check_unchanged().ok());
  std::filesystem::resize_file(path, 10);
  const Status status = mapped->check_unchanged();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("expected 100000 bytes"), std::string::npos);
  EXPECT_NE(status.error().message.find("found 10"), std::string::npos);
  EXPECT_TRUE(read->check_unchanged().ok());
  EXPECT_TRUE(std::ranges::equal(read->bytes(), numbered_bytes(100000)));
}

TEST(MappedFile, AFileReplacedByRenameStaysWhole) {
  const test::TempFolder folder;
  const std::string path = folder.write("file", numbered_bytes(100000));
  const auto mapped = MappedFile::open(path);
  std::filesystem::rename(folder.write("other", numbered_bytes(10)), path);
  EXPECT_TRUE(mapped->check_unchanged().ok());
  EXPECT_TRUE(std::ranges::equal(mapped->bytes(), numbered_bytes(100000)));
}

TEST(MappedFile, AnAddressTellsTheFileWhileItIsMapped) {
  const test::TempFolder folder;
  const std::string path = folder.write("file\n", numbered_bytes(100000));
  auto file = std::make_unique<MappedFile>(MappedFile::open(path).value());
  const MappedFile other = MappedFile::open(folder.write("other", numbered_bytes(10))).value();
  const std::byte* bytes = file->bytes().data();
  for (const size_t at : {size_t{0}, size_t{99999}}) {
    const char* name = mapped_ranges::name_at(bytes + at);
    ASSERT_NE(name, nullptr);
    EXPECT_NE(std::string(name).find("file\\n"), std::string::npos) << name;
  }
  EXPECT_EQ(mapped_ranges::name_at(bytes + 100000), nullptr);
  EXPECT_EQ(mapped_ranges::name_at(&file), nullptr);
  EXPECT_NE(mapped_ranges::name_at(other.bytes().data()), nullptr);
  file.reset();
  EXPECT_EQ(mapped_ranges::name_at(bytes), nullptr);
}

TEST(MappedFile, WhatCannotBeOpenedIsNamed) {
  const auto absent = MappedFile::open("/no/such/file");
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().code, ErrorCode::kNotFound);
  EXPECT_NE(absent.error().message.find("/no/such/file"), std::string::npos);
}

}  // namespace
}  // namespace winnow

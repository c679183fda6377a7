#include "store/prefix_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "support/temp_folder.h"

namespace winnow {
namespace {

constexpr int64_t kPageBytes = 640;

// A folder that is opened again and again, as by one process after the other.
struct Fixture {
  PrefixFolderOptions options(std::string identity = "this") {
    return {.path = temp.path("kv"),
            .limit_bytes = limit_bytes,
            .identity = std::move(identity),
            .page_bytes = kPageBytes,
            .on_useless_file = [this](const Error& error) { useless.push_back(error.message); }};
  }
  std::unique_ptr<PrefixFolder> open(std::string identity = "this") {
    auto folder = PrefixFolder::open(options(std::move(identity)));
    EXPECT_TRUE(folder.ok()) << folder.error().message;
    return std::move(folder).value();
  }
  // The only file.
  std::string file() const {
    std::string found;
    for (const auto& entry : std::filesystem::directory_iterator(temp.path("kv"))) {
      EXPECT_EQ(found, "");
      found = entry.path().string();
    }
    return found;
  }

  test::TempFolder temp;
  int64_t limit_bytes = 1 << 20;
  std::vector<std::string> useless;
};

PrefixHeader header_of(int64_t num_pages, std::string_view tenant = "a") {
  PrefixHeader header{.mode = "", .tenant = tenant_hash(tenant)};
  header.tokens.assign(static_cast<size_t>(num_pages * kPageTokens), 5);
  header.pages.resize(static_cast<size_t>(num_pages));
  return header;
}

std::vector<std::byte> page_of(int value) {
  return std::vector<std::byte>(kPageBytes, static_cast<std::byte>(value));
}

Status save(PrefixFolder& folder, const PrefixName& name, int64_t num_pages,
            std::string_view tenant = "a") {
  TRY(const auto saving, folder.save(name, header_of(num_pages, tenant)));
  for (int64_t i = 0; i < num_pages; ++i) {
    TRY_STATUS(saving->append(page_of(static_cast<int>(i) + 1), i % 2 == 0));
  }
  return saving->finish();
}

TEST(PrefixFolder, AnotherProcessReadsWhatWasSaved) {
  Fixture f;
  ASSERT_TRUE(save(*f.open(), {"me", "doc"}, 3).ok());
  const auto folder = f.open();
  const auto found = folder->find(tenant_hash("a"), "");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0]->header.num_pages(), 3);
  EXPECT_TRUE(found[0]->header.pages[0].has_summaries);
  EXPECT_FALSE(found[0]->header.pages[1].has_summaries);
  const auto file = folder->open_file(*found[0]);
  ASSERT_TRUE(file.ok()) << file.error().message;
  std::vector<std::byte> page(kPageBytes);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE((*file)->read_page(i, page).ok());
    EXPECT_EQ(page, page_of(i + 1));
  }
  EXPECT_TRUE(f.useless.empty());
}

TEST(PrefixFolder, NobodyElseMayReadItsFiles) {
  Fixture f;
  ASSERT_TRUE(save(*f.open(), {"me", "doc"}, 1).ok());
  for (const std::string& path : {f.temp.path("kv"), f.file()}) {
    struct stat info = {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 077, 0U) << path;
  }
}

TEST(PrefixFolder, TenantsModesAndOwnersAreKeptApart) {
  Fixture f;
  const auto folder = f.open();
  ASSERT_TRUE(save(*folder, {"me", "doc"}, 1, "a").ok());
  ASSERT_TRUE(save(*folder, {"you", "doc"}, 2, "b").ok());
  EXPECT_EQ(folder->find(tenant_hash("a"), "").at(0)->header.num_pages(), 1);
  EXPECT_EQ(folder->find(tenant_hash("b"), "").at(0)->header.num_pages(), 2);
  EXPECT_TRUE(folder->find(tenant_hash("c"), "").empty());
  EXPECT_TRUE(folder->find(tenant_hash("a"), "sparse").empty());
  ASSERT_EQ(folder->list("me").size(), 1U);
  EXPECT_EQ(folder->list("me")[0].name, "doc");
  EXPECT_EQ(folder->list("me")[0].num_tokens, kPageTokens);
  EXPECT_TRUE(folder->list("them").empty());
  EXPECT_EQ(folder->remove({"them", "doc"}).error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(folder->remove({"me", "doc"}).ok());
  EXPECT_EQ(folder->list("you").size(), 1U);
  EXPECT_TRUE(folder->list("me").empty());
}

TEST(PrefixFolder, NamesHaveNoPathInThem) {
  Fixture f;
  const auto folder = f.open();
  for (const std::string& name :
       {std::string(), std::string("a/b"), std::string("../a"), std::string("a b"),
        std::string(65, 'a'), std::string("a\0", 2), std::string("\xc3\xa9")}) {
    EXPECT_EQ(save(*folder, {"me", name}, 1).error().code, ErrorCode::kInvalidArgument) << name;
    EXPECT_EQ(folder->remove({"me", name}).error().code, ErrorCode::kInvalidArgument) << name;
  }
  for (const std::string& name : {std::string(".."), std::string("."), std::string("-rf"),
                                  std::string(64, 'z'), std::string("a.prefix")}) {
    EXPECT_TRUE(save(*folder, {"me", name}, 1).ok()) << name;
  }
  EXPECT_EQ(folder->list("me").size(), 5U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(f.temp.path("")),
                          std::filesystem::directory_iterator()),
            1);
}

TEST(PrefixFolder, ANameIsSavedAgainInPlaceOfTheFirst) {
  Fixture f;
  f.limit_bytes = header_of(2).pages_offset() + 2 * kPageBytes;  // no more than one
  const auto folder = f.open();
  ASSERT_TRUE(save(*folder, {"me", "doc"}, 2).ok());
  const auto before = folder->find(tenant_hash("a"), "").at(0);
  ASSERT_TRUE(save(*folder, {"me", "doc"}, 1).ok());
  EXPECT_EQ(folder->list("me").at(0).num_tokens, kPageTokens);
  EXPECT_EQ(folder->open_file(*before).error().code, ErrorCode::kNotFound);
  f.file();
}

TEST(PrefixFolder, WhatGoesBeyondTheLimitIsRefused) {
  Fixture f;
  f.limit_bytes = 3 * header_of(1).pages_offset();
  const auto folder = f.open();
  ASSERT_TRUE(save(*folder, {"me", "one"}, 1).ok());
  {
    const auto under_way = folder->save({"me", "two"}, header_of(1));
    ASSERT_TRUE(under_way.ok());
    EXPECT_EQ(save(*folder, {"you", "three"}, 1).error().code, ErrorCode::kStorageFull);
  }
  EXPECT_TRUE(save(*folder, {"you", "three"}, 1).ok());
  EXPECT_TRUE(folder->remove({"me", "one"}).ok());
  EXPECT_TRUE(save(*folder, {"me", "two"}, 1).ok());
}

TEST(PrefixFolder, AnUnfinishedSaveLeavesNothing) {
  Fixture f;
  {
    const auto folder = f.open();
    const auto saving = folder->save({"me", "doc"}, header_of(2));
    ASSERT_TRUE((*saving)->append(page_of(1), false).ok());
  }
  EXPECT_EQ(f.file(), "");
  // A process that was killed could not clean up.
  f.temp.write("kv/doc.0123456789abcdef.prefix.AbC123", page_of(1));
  f.temp.write("kv/another thing", page_of(1));
  f.open();
  EXPECT_TRUE(f.file().ends_with("another thing"));
}

TEST(PrefixFolder, FilesOfAnotherModelAreLeftAlone) {
  Fixture f;
  ASSERT_TRUE(save(*f.open("that"), {"me", "doc"}, 1).ok());
  const auto folder = f.open();
  EXPECT_TRUE(folder->find(tenant_hash("a"), "").empty());
  EXPECT_TRUE(folder->list("me").empty());
  ASSERT_EQ(f.useless.size(), 1U);
  EXPECT_NE(f.useless[0].find("expected a prefix made by 'this', found 'that'"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(f.file()));
  EXPECT_TRUE(folder->remove({"me", "doc"}).ok());
}

TEST(PrefixFolder, ADamagedFileIsToldOnceAndNotUsed) {
  Fixture f;
  ASSERT_TRUE(save(*f.open(), {"me", "doc"}, 2).ok());
  const std::string path = f.file();
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path));
  for (const int64_t kept : {int64_t{0}, int64_t{7}, int64_t{60}, size - 1}) {
    std::filesystem::resize_file(path, static_cast<uintmax_t>(kept));
    const auto folder = f.open();
    EXPECT_TRUE(folder->find(tenant_hash("a"), "").empty()) << kept;
    EXPECT_EQ(f.useless.size(), 1U) << kept;
    f.useless.clear();
  }
}

TEST(PrefixFolder, ADamagedPageIsNoticedWhenItIsRead) {
  Fixture f;
  ASSERT_TRUE(save(*f.open(), {"me", "doc"}, 2).ok());
  {
    std::fstream file(f.file(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(header_of(2).pages_offset() + kPageBytes + 5);
    file.put('\x7f');
  }
  const auto folder = f.open();
  const auto prefix = folder->find(tenant_hash("a"), "").at(0);
  const auto file = folder->open_file(*prefix);
  std::vector<std::byte> page(kPageBytes);
  EXPECT_TRUE((*file)->read_page(0, page).ok());
  const Status damaged = (*file)->read_page(1, page);
  ASSERT_FALSE(damaged.ok());
  EXPECT_NE(damaged.error().message.find("expected the checksum of page 1"), std::string::npos);
  folder->set_aside(*prefix, damaged.error());
  EXPECT_TRUE(folder->find(tenant_hash("a"), "").empty());
  EXPECT_EQ(f.useless.size(), 1U);
}

TEST(PrefixFolder, ThingsThatAreNoFilesAreNotRead) {
  Fixture f;
  f.open();
  const std::string name = f.temp.path("kv/a.0123456789abcdef.prefix");
  ASSERT_EQ(::mkfifo(name.c_str(), 0600), 0);
  f.open();
  EXPECT_EQ(f.useless.size(), 1U);
  std::filesystem::remove(name);
  std::filesystem::create_symlink("/etc/passwd", name);
  f.open();
  EXPECT_EQ(f.useless.size(), 2U);
}

TEST(PrefixFolder, HasOneServerAtATime) {
  Fixture f;
  auto folder = f.open();
  EXPECT_EQ(PrefixFolder::open(f.options()).error().code, ErrorCode::kOverloaded);
  folder.reset();
  f.open();
}

TEST(PrefixFolder, APlaceThatIsNoFolderIsRefused) {
  Fixture f;
  f.temp.write("kv", page_of(1));
  const auto folder = PrefixFolder::open(f.options());
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace winnow

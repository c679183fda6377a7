#include "store/prefix_header.h"

#include <gtest/gtest.h>

#include <cstring>

namespace winnow {
namespace {

PrefixHeader some_header(int64_t num_pages = 2) {
  PrefixHeader header{
      .identity = "weights=1", .mode = "rule", .tenant = tenant_hash("a"), .page_bytes = 640};
  for (int64_t i = 0; i < num_pages; ++i) {
    for (int token = 0; token < kPageTokens; ++token) header.tokens.push_back(token + 7);
    header.pages.push_back({.checksum = static_cast<uint64_t>(i) * 77,
                            .kind = i % 2 == 0 ? PageKind::kDense : PageKind::kSparse,
                            .has_summaries = i % 2 == 1});
  }
  return header;
}

uint64_t file_bytes(const PrefixHeader& header) {
  return static_cast<uint64_t>(header.file_bytes());
}

ErrorCode code_of(std::span<const std::byte> bytes, uint64_t size) {
  const Result<PrefixHeader> header = decode_prefix_header(bytes, size, "file");
  if (header.ok()) {
    ADD_FAILURE() << "accepted";
    return {};
  }
  EXPECT_NE(header.error().message.find("file: expected "), std::string::npos)
      << header.error().message;
  return header.error().code;
}

TEST(PrefixHeader, ReadsWhatWasWritten) {
  for (const int64_t num_pages : {1, 2, 9}) {
    const PrefixHeader header = some_header(num_pages);
    const std::vector<std::byte> bytes = encode_prefix_header(header);
    const auto size =
        prefix_header_bytes(std::span(bytes).first(kPrefixHeadBytes), file_bytes(header), "file");
    ASSERT_TRUE(size.ok()) << size.error().message;
    EXPECT_EQ(*size, bytes.size());
    const auto read = decode_prefix_header(bytes, file_bytes(header), "file");
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(*read, header);
    EXPECT_GE(header.pages_offset(), std::ssize(bytes));
  }
}

TEST(PrefixHeader, EveryChangedByteIsNoticed) {
  const PrefixHeader header = some_header(1);
  const std::vector<std::byte> bytes = encode_prefix_header(header);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> changed = bytes;
    changed[i] ^= std::byte{0x10};
    EXPECT_FALSE(decode_prefix_header(changed, file_bytes(header), "file").ok()) << i;
  }
}

TEST(PrefixHeader, ACutHeaderIsRefused) {
  const PrefixHeader header = some_header(1);
  const std::vector<std::byte> bytes = encode_prefix_header(header);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(code_of(std::span(bytes).first(size), file_bytes(header)), ErrorCode::kCorruptFile);
    EXPECT_EQ(code_of(std::span(bytes).first(size), size), ErrorCode::kCorruptFile);
  }
}

TEST(PrefixHeader, CountsThatDoNotFitTheFileAreRefusedBeforeAnythingIsMadeOfThem) {
  const PrefixHeader header = some_header(1);
  const std::vector<std::byte> bytes = encode_prefix_header(header);
  for (const size_t offset : {12, 16, 24, 28}) {  // pages, bytes of a page, of identity and mode
    for (const uint32_t value : {0U, 1U, 0x7fffffffU, 0xffffffffU}) {
      std::vector<std::byte> changed = bytes;
      std::memcpy(changed.data() + offset, &value, sizeof(value));
      if (changed == bytes) continue;
      EXPECT_EQ(code_of(changed, file_bytes(header)), ErrorCode::kCorruptFile);
      const auto size = prefix_header_bytes(changed, file_bytes(header), "file");
      EXPECT_LE(size.ok() ? *size : 0, file_bytes(header));
    }
  }
  EXPECT_EQ(code_of(bytes, file_bytes(header) + 1), ErrorCode::kCorruptFile);
}

TEST(PrefixHeader, AnotherVersionIsNamed) {
  const PrefixHeader header = some_header(1);
  std::vector<std::byte> bytes = encode_prefix_header(header);
  bytes[8] = std::byte{9};
  const auto read = decode_prefix_header(bytes, file_bytes(header), "file");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(read.error().message, "file: expected version 1 of saved prefixes, found 9");
}

TEST(PrefixHeader, TenantsDiffer) {
  EXPECT_EQ(tenant_hash("a"), tenant_hash("a"));
  EXPECT_NE(tenant_hash("a"), tenant_hash("b"));
  EXPECT_NE(tenant_hash(""), tenant_hash(std::string(1, '\0')));
  EXPECT_NE(tenant_hash(std::string(8, '\0')), tenant_hash(std::string(9, '\0')));
}

}  // namespace
}  // namespace winnow

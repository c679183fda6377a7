#include "store/prefix_header.h"

#include <bit>
#include <cstring>

#include "base/byte_reader.h"
#include "base/check.h"
#include "base/checked.h"
#include "base/escape.h"
#include "kv/sip_hash.h"
#include "store/byte_hash.h"

namespace winnow {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

constexpr std::string_view kMagic = "WINNOWKV";
constexpr uint32_t kVersion = 1;
constexpr uint64_t kPagesAlignment = 4096;
constexpr uint64_t kTableEntryBytes = 16;
constexpr uint64_t kMaxPageBytes = uint64_t{1} << 40;

// The numbers that come first.
struct Head {
  uint32_t num_pages = 0;
  uint64_t page_bytes = 0;
  uint32_t identity_bytes = 0;
  uint32_t mode_bytes = 0;
  TenantHash tenant = {};
};

// Of everything up to and with the header's checksum.
Checked header_bytes(const Head& head) {
  const Checked texts =
      (Checked(head.identity_bytes) + head.mode_bytes + kPrefixHeadBytes).round_up(8);
  const Checked per_page = Checked(kPageTokens) * sizeof(TokenId) + kTableEntryBytes;
  return texts + per_page * head.num_pages + sizeof(uint64_t);
}

Head head_of(const PrefixHeader& header) {
  return {.num_pages = static_cast<uint32_t>(header.num_pages()),
          .page_bytes = static_cast<uint64_t>(header.page_bytes),
          .identity_bytes = static_cast<uint32_t>(header.identity.size()),
          .mode_bytes = static_cast<uint32_t>(header.mode.size()),
          .tenant = header.tenant};
}

Error corrupt(const std::string& name, const std::string& expected, const std::string& found) {
  return fail(ErrorCode::kCorruptFile, "%s: expected %s, found %s", escaped(name).c_str(),
              expected.c_str(), found.c_str());
}

// Requires that `bytes` has kPrefixHeadBytes.
Result<Head> read_head(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.size() < kPrefixHeadBytes ||
      std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    return corrupt(name, "a saved prefix", "another file");
  }
  ByteReader in(bytes.subspan(kMagic.size()));
  const uint32_t version = in.read<uint32_t>().value_or(0);
  if (version != kVersion) {
    return fail(ErrorCode::kUnsupported, "%s: expected version %u of saved prefixes, found %u",
                escaped(name).c_str(), kVersion, version);
  }
  Head head;
  head.num_pages = in.read<uint32_t>().value_or(0);
  head.page_bytes = in.read<uint64_t>().value_or(0);
  head.identity_bytes = in.read<uint32_t>().value_or(0);
  head.mode_bytes = in.read<uint32_t>().value_or(0);
  for (uint64_t& half : head.tenant) half = in.read<uint64_t>().value_or(0);
  return head;
}

Status check_sizes(const Head& head, uint64_t file_bytes, const std::string& name) {
  if (head.num_pages == 0 || head.page_bytes == 0 || head.page_bytes > kMaxPageBytes) {
    return corrupt(name, "pages of 1 to " + std::to_string(kMaxPageBytes) + " bytes",
                   std::to_string(head.num_pages) + " of " + std::to_string(head.page_bytes));
  }
  if (head.identity_bytes > kMaxPrefixTextBytes || head.mode_bytes > kMaxPrefixTextBytes) {
    return corrupt(name, "an identity of at most " + std::to_string(kMaxPrefixTextBytes) + " bytes",
                   std::to_string(std::max(head.identity_bytes, head.mode_bytes)));
  }
  const Checked size =
      header_bytes(head).round_up(kPagesAlignment) + Checked(head.page_bytes) * head.num_pages;
  if (size.get() != file_bytes) {
    return corrupt(name, size.valid() ? std::to_string(*size.get()) + " bytes" : "a possible size",
                   std::to_string(file_bytes));
  }
  return Ok{};
}

template <class T>
void put(std::vector<std::byte>& bytes, const T& value) {
  const auto* data = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), data, data + sizeof(value));
}

void put_text(std::vector<std::byte>& bytes, std::string_view text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  bytes.insert(bytes.end(), data, data + text.size());
}

Result<SavedPage> read_page_entry(ByteReader& in, const std::string& name) {
  SavedPage page;
  page.checksum = in.read<uint64_t>().value_or(0);
  const uint32_t kind = in.read<uint32_t>().value_or(0);
  const uint32_t has_summaries = in.read<uint32_t>().value_or(0);
  if (kind > static_cast<uint32_t>(PageKind::kSparse) || has_summaries > 1) {
    return corrupt(name, "pages of prompt tokens", "a page of kind " + std::to_string(kind));
  }
  page.kind = static_cast<PageKind>(kind);
  page.has_summaries = has_summaries == 1;
  return page;
}

}  // namespace

TenantHash tenant_hash(std::string_view tenant) {
  TenantHash halves = {};
  for (size_t i = 0; i < halves.size(); ++i) {
    SipHash hash(0x74656e616e74, i);
    for (size_t at = 0; at < tenant.size(); at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, tenant.data() + at, std::min(sizeof(word), tenant.size() - at));
      hash.add(word);
    }
    hash.add(tenant.size());
    halves[i] = hash.finish();
  }
  return halves;
}

int64_t PrefixHeader::pages_offset() const {
  const std::optional<uint64_t> offset =
      header_bytes(head_of(*this)).round_up(kPagesAlignment).get();
  return static_cast<int64_t>(offset.value());
}

std::vector<std::byte> encode_prefix_header(const PrefixHeader& header) {
  CHECK(header.num_tokens() == header.num_pages() * kPageTokens);
  CHECK(std::max(header.identity.size(), header.mode.size()) <= kMaxPrefixTextBytes);
  const Head head = head_of(header);
  std::vector<std::byte> bytes;
  put_text(bytes, kMagic);
  put(bytes, kVersion), put(bytes, head.num_pages), put(bytes, head.page_bytes);
  put(bytes, head.identity_bytes), put(bytes, head.mode_bytes), put(bytes, head.tenant);
  CHECK(bytes.size() == kPrefixHeadBytes);
  put_text(bytes, header.identity), put_text(bytes, header.mode);
  bytes.resize((bytes.size() + 7) / 8 * 8);
  for (const TokenId token : header.tokens) put(bytes, token);
  for (const SavedPage& page : header.pages) {
    put(bytes, page.checksum), put(bytes, static_cast<uint32_t>(page.kind));
    put(bytes, uint32_t{page.has_summaries});
  }
  put(bytes, byte_hash(bytes));
  return bytes;
}

Result<uint64_t> prefix_header_bytes(std::span<const std::byte> bytes, uint64_t file_bytes,
                                     const std::string& name) {
  TRY(const Head head, read_head(bytes, name));
  TRY_STATUS(check_sizes(head, file_bytes, name));
  return header_bytes(head).get().value();
}

Result<PrefixHeader> decode_prefix_header(std::span<const std::byte> bytes, uint64_t file_bytes,
                                          const std::string& name) {
  TRY(const Head head, read_head(bytes, name));
  TRY_STATUS(check_sizes(head, file_bytes, name));
  const uint64_t size = header_bytes(head).get().value();
  if (bytes.size() < size) {
    return corrupt(name, "a header of " + std::to_string(size) + " bytes",
                   std::to_string(bytes.size()));
  }
  bytes = bytes.first(size);
  const std::span hashed = bytes.first(size - sizeof(uint64_t));
  if (ByteReader(bytes.subspan(hashed.size())).read<uint64_t>() != byte_hash(hashed)) {
    return corrupt(name, "the checksum of its header", "another");
  }
  PrefixHeader header;
  ByteReader in(hashed.subspan(kPrefixHeadBytes));
  header.identity = in.read_text(head.identity_bytes).value_or("");
  header.mode = in.read_text(head.mode_bytes).value_or("");
  in.read_text((8 - (head.identity_bytes + head.mode_bytes) % 8) % 8);
  header.tenant = head.tenant;
  header.page_bytes = static_cast<int64_t>(head.page_bytes);
  header.tokens.resize(size_t{head.num_pages} * kPageTokens);
  for (TokenId& token : header.tokens) token = in.read<TokenId>().value_or(0);
  for (uint32_t i = 0; i < head.num_pages; ++i) {
    TRY(const SavedPage page, read_page_entry(in, name));
    header.pages.push_back(page);
  }
  CHECK(in.left() == 0);
  return header;
}

}  // namespace winnow

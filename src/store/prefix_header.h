// PrefixHeader: what the file of a saved prefix says of its pages. Nothing in a file is trusted:
// every count is checked against the file's size before anything is made of it.
//
// Layout of a file, little-endian:
//   8 bytes "WINNOWKV", u32 version, u32 pages, u64 bytes of a page,
//   u32 bytes of the identity, u32 bytes of the mode, 2 x u64 tenant,
//   the identity, the mode, zeros up to a multiple of 8,
//   i32 tokens [pages][kPageTokens],
//   per page: u64 XXH3 of its bytes, u32 kind, u32 1 if its block summaries are written,
//   u64 XXH3 of all bytes before it,
//   zeros up to a multiple of 4096, and the pages, one behind the other.
// A page is its bytes of layer 0, layer 1, ... as they lie in memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "kv/prefix_cache.h"

namespace winnow {

struct SavedPage {
  uint64_t checksum = 0;
  PageKind kind = PageKind::kDense;  // never kGenerated
  bool has_summaries = false;

  friend bool operator==(const SavedPage&, const SavedPage&) = default;
};

// Whose prefixes: a hash, so that a file does not tell keys.
using TenantHash = std::array<uint64_t, 2>;
TenantHash tenant_hash(std::string_view tenant);

struct PrefixHeader {
  std::string identity = {};  // what made the pages: weights, program, kernels, layout
  std::string mode = {};      // by which rule its sparse rows attended; empty = dense
  TenantHash tenant = {};
  int64_t page_bytes = 0;             // of all layers together
  std::vector<TokenId> tokens = {};   // [pages][kPageTokens]
  std::vector<SavedPage> pages = {};  // at least one

  friend bool operator==(const PrefixHeader&, const PrefixHeader&) = default;

  int64_t num_pages() const { return std::ssize(pages); }
  int64_t num_tokens() const { return std::ssize(tokens); }
  std::span<const TokenId> page_tokens(int64_t page_idx) const {
    return std::span(tokens).subspan(static_cast<size_t>(page_idx) * kPageTokens, kPageTokens);
  }
  // Where the pages begin, and where the file ends.
  int64_t pages_offset() const;
  int64_t file_bytes() const { return pages_offset() + num_pages() * page_bytes; }
};

inline constexpr size_t kPrefixHeadBytes = 48;       // tell how many bytes the header has
inline constexpr size_t kMaxPrefixTextBytes = 1024;  // of identity and mode

// Requires tokens for all pages, and identity and mode of at most kMaxPrefixTextBytes.
std::vector<std::byte> encode_prefix_header(const PrefixHeader& header);

// How many bytes a file's header has, from its first kPrefixHeadBytes (fewer if it has no more).
// kCorruptFile or kUnsupported naming the file, what was expected and found.
Result<uint64_t> prefix_header_bytes(std::span<const std::byte> head, uint64_t file_bytes,
                                     const std::string& name);
// The header from its bytes, of a file of that size. Fails likewise.
Result<PrefixHeader> decode_prefix_header(std::span<const std::byte> bytes, uint64_t file_bytes,
                                          const std::string& name);

}  // namespace winnow

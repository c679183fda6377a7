// Links: store
// Any bytes as the file of a saved prefix: refused with a message, or read within its bounds. The
// first byte says whether the header's checksum is made to agree, so that what lies behind it is
// reached.
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "store/byte_hash.h"
#include "store/prefix_header.h"

namespace {

using Bytes = std::vector<std::byte>;

void correct_checksum(Bytes& bytes, uint64_t header_bytes) {
  if (header_bytes > bytes.size()) return;
  const uint64_t hashed_bytes = header_bytes - sizeof(uint64_t);
  const uint64_t hash = winnow::byte_hash(std::span(bytes).first(hashed_bytes));
  std::memcpy(bytes.data() + hashed_bytes, &hash, sizeof(hash));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  Bytes bytes(begin + 1, begin + size);
  // Pages are not looked at here, so a file may be as long as its header says.
  uint64_t file_bytes = bytes.size();
  if (bytes.size() >= winnow::kPrefixHeadBytes) {
    uint32_t num_pages = 0;
    uint64_t page_bytes = 0;
    std::memcpy(&num_pages, bytes.data() + 12, sizeof(num_pages));
    std::memcpy(&page_bytes, bytes.data() + 16, sizeof(page_bytes));
    if ((data[0] & 2) != 0)
      file_bytes = (bytes.size() + 4095) / 4096 * 4096 + num_pages * page_bytes;
  }
  const auto header_bytes = winnow::prefix_header_bytes(bytes, file_bytes, "fuzz.prefix");
  if (header_bytes.ok()) {
    CHECK(*header_bytes <= file_bytes);
    if ((data[0] & 1) != 0) correct_checksum(bytes, *header_bytes);
  }
  const auto header = winnow::decode_prefix_header(bytes, file_bytes, "fuzz.prefix");
  if (!header.ok()) {
    CHECK(!header.error().message.empty());
    return 0;
  }
  CHECK(header_bytes.ok() && header->num_tokens() == header->num_pages() * winnow::kPageTokens);
  CHECK(static_cast<uint64_t>(header->file_bytes()) == file_bytes);
  const Bytes again = winnow::encode_prefix_header(*header);
  CHECK(again.size() == *header_bytes);
  const auto same = winnow::decode_prefix_header(again, file_bytes, "fuzz.prefix");
  CHECK(same.ok() && *same == *header);
  return 0;
}

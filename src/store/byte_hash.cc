#include "store/byte_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdio>

namespace winnow {

struct ByteDigest::State {
  alignas(64) XXH3_state_t hash;
};

uint64_t byte_hash(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

ByteDigest::ByteDigest() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->hash); }
ByteDigest::~ByteDigest() = default;

void ByteDigest::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state_->hash, bytes.data(), bytes.size());
}

std::string ByteDigest::hex() const {
  const XXH128_hash_t digest = XXH3_128bits_digest(&state_->hash);
  char text[33];
  std::snprintf(text, sizeof(text), "%016llx%016llx",
                static_cast<unsigned long long>(digest.high64),
                static_cast<unsigned long long>(digest.low64));
  return text;
}

}  // namespace winnow

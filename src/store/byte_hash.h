// Hashes of bytes that tell whether they are the same as before. Whoever can choose the bytes can
// make two that agree: they find damage, and prove nothing about who wrote what.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace winnow {

// XXH3, 64 bits.
uint64_t byte_hash(std::span<const std::byte> bytes);

// XXH3, 128 bits, of bytes that come in parts.
class ByteDigest {
 public:
  ByteDigest();
  ~ByteDigest();

  void add(std::span<const std::byte> bytes);
  // Of all that was added: 32 hexadecimal digits.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace winnow

// ByteReader: a bounds-checked cursor over little-endian bytes that are not trusted.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace winnow {

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint64_t position() const { return position_; }
  uint64_t left() const { return bytes_.size() - position_; }

  // The next sizeof(T) bytes as a number; nothing, and no movement, if they are not there.
  template <class T>
  std::optional<T> read() {
    static_assert(std::is_arithmetic_v<T> && std::endian::native == std::endian::little);
    if (left() < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  // The next `count` bytes, not copied; nothing, and no movement, if they are not there.
  std::optional<std::string_view> read_text(uint64_t count) {
    if (count > left()) return std::nullopt;
    const char* text = reinterpret_cast<const char*>(bytes_.data() + position_);
    position_ += count;
    return std::string_view(text, count);
  }

 private:
  std::span<const std::byte> bytes_;
  uint64_t position_ = 0;
};

}  // namespace winnow

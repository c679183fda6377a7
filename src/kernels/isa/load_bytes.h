// Little-endian numbers at any address.
#pragma once

#include <cstdint>
#include <cstring>

namespace winnow {
namespace {

inline uint16_t load_u16(const uint8_t* p) {
  uint16_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}
inline uint32_t load_u32(const uint8_t* p) {
  uint32_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}
inline uint64_t load_u64(const uint8_t* p) {
  uint64_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

}  // namespace
}  // namespace winnow

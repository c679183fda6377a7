// Element types of stored tensors, numbered as GGUF numbers them.
// Quantised types store rows as groups of `group_size` elements in `group_bytes` bytes
// (qformats.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace winnow {

enum class DType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIQ4_NL = 20,
  kIQ4_XS = 23,
  kBF16 = 30,
  kMXFP4 = 39,
};

struct DTypeInfo {
  DType dtype;
  std::string_view name;  // as in GGUF tools: "Q4_K"
  int group_size;         // elements per group, 1 for plain numbers
  int group_bytes;
};

const DTypeInfo& dtype_info(DType dtype);
// Nothing if the number is unknown or a type that is not supported.
std::optional<DType> dtype_from_gguf(uint32_t number);
// The supported types, for messages: "F32, F16, ...".
std::string supported_dtype_names();
// Bytes of `elements` values. Requires elements % group_size == 0.
int64_t dtype_bytes(DType dtype, int64_t elements);

}  // namespace winnow

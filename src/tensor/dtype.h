// Element types of stored tensors, numbered as GGUF numbers them.
// Quantised types store rows as groups of `group_size` elements in `group_bytes` bytes
// (qformats.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tensor/dtype_number.h"

namespace winnow {

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

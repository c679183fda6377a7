#include "tensor/dtype.h"

#include <array>

#include "base/check.h"

namespace winnow {
namespace {

constexpr std::array kTypes = {
    DTypeInfo{DType::kF32, "F32", 1, 4},           DTypeInfo{DType::kF16, "F16", 1, 2},
    DTypeInfo{DType::kBF16, "BF16", 1, 2},         DTypeInfo{DType::kQ4_0, "Q4_0", 32, 18},
    DTypeInfo{DType::kQ4_1, "Q4_1", 32, 20},       DTypeInfo{DType::kQ5_0, "Q5_0", 32, 22},
    DTypeInfo{DType::kQ5_1, "Q5_1", 32, 24},       DTypeInfo{DType::kQ8_0, "Q8_0", 32, 34},
    DTypeInfo{DType::kQ2_K, "Q2_K", 256, 84},      DTypeInfo{DType::kQ3_K, "Q3_K", 256, 110},
    DTypeInfo{DType::kQ4_K, "Q4_K", 256, 144},     DTypeInfo{DType::kQ5_K, "Q5_K", 256, 176},
    DTypeInfo{DType::kQ6_K, "Q6_K", 256, 210},     DTypeInfo{DType::kIQ4_NL, "IQ4_NL", 32, 18},
    DTypeInfo{DType::kIQ4_XS, "IQ4_XS", 256, 136}, DTypeInfo{DType::kMXFP4, "MXFP4", 32, 17},
};

}  // namespace

std::optional<DType> dtype_from_gguf(uint32_t number) {
  for (const DTypeInfo& info : kTypes) {
    if (static_cast<uint32_t>(info.dtype) == number) return info.dtype;
  }
  return std::nullopt;
}

const DTypeInfo& dtype_info(DType dtype) {
  for (const DTypeInfo& info : kTypes) {
    if (info.dtype == dtype) return info;
  }
  check_failed(__FILE__, __LINE__, "known dtype");
}

std::string supported_dtype_names() {
  std::string names;
  for (const DTypeInfo& info : kTypes) {
    if (!names.empty()) names += ", ";
    names += info.name;
  }
  return names;
}

int64_t dtype_bytes(DType dtype, int64_t elements) {
  const DTypeInfo& info = dtype_info(dtype);
  CHECK(elements % info.group_size == 0);
  return elements / info.group_size * info.group_bytes;
}

}  // namespace winnow

// Parses one GGUF file, version 2 or 3: header, metadata and tensor list. Reads nothing of the
// tensor data. How split files come together is gguf.cc's matter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "weights/gguf.h"
#include "weights/metadata.h"

namespace winnow {

struct GgufPart {
  int version = 0;
  Metadata metadata;
  std::vector<TensorInfo> tensors;  // data points into the parsed bytes
};

// Upper limits far above any real model, so that a file cannot make the reader use much memory or
// time.
inline constexpr uint64_t kMaxGgufHeaderBytes = uint64_t{256} << 20;
inline constexpr uint64_t kMaxGgufEntries = uint64_t{1} << 18;        // metadata keys, and tensors
inline constexpr uint64_t kMaxGgufArrayElements = uint64_t{1} << 24;  // of all arrays together
inline constexpr uint64_t kMaxGgufNameBytes = 65535;                  // keys and tensor names
inline constexpr uint64_t kMaxGgufAlignment = uint64_t{1} << 20;
inline constexpr uint32_t kMaxGgufDims = 4;

// `file_name` is used in error messages only.
Result<GgufPart> parse_gguf_part(std::span<const std::byte> bytes, const std::string& file_name);

}  // namespace winnow

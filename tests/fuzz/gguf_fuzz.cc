// Links: weights
// Any bytes as a GGUF file: refused or read, within the bounds of the reader.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "weights/gguf_part.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto part = winnow::parse_gguf_part(bytes, "fuzz.gguf");
  if (!part.ok()) {
    CHECK(!part.error().message.empty());
    return 0;
  }
  for (const winnow::TensorInfo& tensor : part->tensors) {
    const auto offset = static_cast<uint64_t>(tensor.data - bytes.data());
    CHECK(offset <= size && static_cast<uint64_t>(tensor.num_bytes) <= size - offset);
  }
  return 0;
}

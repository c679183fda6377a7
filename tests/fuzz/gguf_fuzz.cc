// Links: weights
// Any bytes as a GGUF file: refused with a message, or read, shown and de-quantised within its own
// bounds.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "tensor/qformats.h"
#include "weights/gguf.h"
#include "weights/inspect.h"

namespace {

// One group at either end: reading outside the data would show.
void dequantize_ends(const winnow::TensorInfo& tensor) {
  const winnow::DTypeInfo& info = winnow::dtype_info(tensor.dtype);
  std::vector<float> group(static_cast<size_t>(info.group_size));
  winnow::dequantize(tensor.dtype, tensor.data, info.group_size, group.data());
  const std::byte* last = tensor.data + tensor.num_bytes - info.group_bytes;
  winnow::dequantize(tensor.dtype, last, info.group_size, group.data());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto file = winnow::GgufFile::open_bytes({bytes.begin(), bytes.end()}, "fuzz.gguf");
  if (!file.ok()) {
    CHECK(!file.error().message.empty());
    return 0;
  }
  for (const winnow::TensorInfo& tensor : (*file)->tensors()) {
    CHECK((*file)->find(tensor.name) == &tensor);
    dequantize_ends(tensor);
  }
  CHECK(!winnow::to_text(winnow::summarize(**file)).empty());
  return 0;
}

// GGUF model files, versions 2 and 3, single or split (…-00001-of-0000N.gguf; open the first part).
// Format: the GGUF specification of the ggml project. Nothing in the file is trusted: every size,
// count and offset is checked, and a file that contradicts itself is refused by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "tensor/weight_view.h"
#include "weights/metadata.h"

namespace winnow {

struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> dims;        // innermost first, as in the file; each >= 1
  const std::byte* data = nullptr;  // valid while the GgufFile lives
  int64_t num_bytes = 0;

  int64_t cols() const { return dims[0]; }
  int64_t rows() const { return dims.size() > 1 ? dims[1] : 1; }
  // Requires at most two dimensions.
  WeightView view() const { return {dtype, rows(), cols(), data}; }
};

// Owns the mapping (or, where mapping is impossible, a copy) of all parts.
class GgufFile {
 public:
  // Reads headers only: the cost does not depend on the size of the weights.
  static Result<std::unique_ptr<GgufFile>> open(const std::string& path,
                                                MapMode mode = MapMode::kMapOrRead);
  // A single file from memory; `name` stands for its path in messages.
  static Result<std::unique_ptr<GgufFile>> open_bytes(std::vector<std::byte> bytes,
                                                      const std::string& name);
  ~GgufFile();

  // Of a split model: the first part's.
  const Metadata& metadata() const;
  const std::vector<TensorInfo>& tensors() const;  // in file order
  const TensorInfo* find(std::string_view name) const;
  int version() const;
  uint64_t file_bytes() const;  // of all parts
  int num_parts() const;
  // Every byte, part by part.
  std::vector<std::span<const std::byte>> part_bytes() const;
  // An error if a mapped part has been shortened or written to since it was opened (see
  // MappedFile).
  Status check_unchanged() const;

 private:
  struct Impl;
  explicit GgufFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow

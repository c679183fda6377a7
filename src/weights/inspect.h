// What a model file holds, ready to be shown: metadata, tensors and totals, with long values
// shortened.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weights/gguf.h"

namespace winnow {

// All strings are printable UTF-8: control characters and broken bytes are escaped.
struct FileSummary {
  struct Key {
    std::string name;
    std::string type;   // "integer", "string[49152]"
    std::string value;  // texts in quotes; at most a few elements of an array
  };
  struct Tensor {
    std::string name;
    std::string type;  // "Q4_K"
    std::vector<int64_t> dims;
    int64_t num_bytes = 0;
  };
  struct TypeTotal {
    std::string type;
    int64_t num_tensors = 0;
    int64_t num_elements = 0;
    int64_t num_bytes = 0;
  };

  int version = 0;
  int num_parts = 1;
  uint64_t file_bytes = 0;
  std::vector<Key> keys;          // by name
  std::vector<Tensor> tensors;    // in file order
  std::vector<TypeTotal> totals;  // largest first
  int64_t num_elements = 0;       // of all tensors
  int64_t tensor_bytes = 0;
};

FileSummary summarize(const GgufFile& file);

// Lines of text, each ended by a newline; columns are aligned.
std::string to_text(const FileSummary& summary);

}  // namespace winnow

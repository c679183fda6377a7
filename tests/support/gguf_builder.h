// GgufBuilder: makes the bytes of a GGUF file, right or wrong ones, for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "weights/gguf.h"

namespace winnow::test {

using Bytes = std::vector<std::byte>;

template <class T>
void append(Bytes& bytes, T value) {
  static_assert(std::is_arithmetic_v<T>);
  const std::byte* begin = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof(T));
}

inline void append_text(Bytes& bytes, std::string_view text) {
  append(bytes, uint64_t{text.size()});
  const std::byte* begin = reinterpret_cast<const std::byte*>(text.data());
  bytes.insert(bytes.end(), begin, begin + text.size());
}

// The number of a C++ type among the value types of GGUF.
template <class T>
constexpr uint32_t value_type() {
  if constexpr (std::is_same_v<T, uint8_t>) return 0;
  if constexpr (std::is_same_v<T, int8_t>) return 1;
  if constexpr (std::is_same_v<T, uint16_t>) return 2;
  if constexpr (std::is_same_v<T, int16_t>) return 3;
  if constexpr (std::is_same_v<T, uint32_t>) return 4;
  if constexpr (std::is_same_v<T, int32_t>) return 5;
  if constexpr (std::is_same_v<T, float>) return 6;
  if constexpr (std::is_same_v<T, bool>) return 7;
  if constexpr (std::is_same_v<T, uint64_t>) return 10;
  if constexpr (std::is_same_v<T, int64_t>) return 11;
  if constexpr (std::is_same_v<T, double>) return 12;
}
inline constexpr uint32_t kTextType = 8;
inline constexpr uint32_t kArrayType = 9;

class GgufBuilder {
 public:
  struct Entry {
    std::string key;
    uint32_t type = 0;
    Bytes value;
  };
  struct Tensor {
    std::string name;
    uint32_t type = 0;
    std::vector<uint64_t> dims;
    Bytes data;
    std::optional<uint64_t> offset;  // instead of the next free place
  };

  std::string magic = "GGUF";
  uint32_t version = 3;
  uint64_t alignment = 32;  // of the layout; the key general.alignment is set apart
  std::vector<Entry> entries;
  std::vector<Tensor> tensors;

  // Replaces the entry of that name where it stands, or adds one.
  GgufBuilder& raw(std::string key, uint32_t type, Bytes value) {
    for (Entry& entry : entries) {
      if (entry.key == key) {
        entry = {std::move(key), type, std::move(value)};
        return *this;
      }
    }
    entries.push_back({std::move(key), type, std::move(value)});
    return *this;
  }
  template <class T>
  GgufBuilder& number(std::string key, T value) {
    Bytes bytes;
    append(bytes, value);
    return raw(std::move(key), value_type<T>(), std::move(bytes));
  }
  GgufBuilder& text(std::string key, std::string_view value) {
    Bytes bytes;
    append_text(bytes, value);
    return raw(std::move(key), kTextType, std::move(bytes));
  }
  template <class T>
  GgufBuilder& array(std::string key, const std::vector<T>& values) {
    Bytes bytes;
    append(bytes, value_type<T>());
    append(bytes, uint64_t{values.size()});
    for (const T value : values) append(bytes, value);
    return raw(std::move(key), kArrayType, std::move(bytes));
  }
  GgufBuilder& texts(std::string key, const std::vector<std::string>& values) {
    Bytes bytes;
    append(bytes, kTextType);
    append(bytes, uint64_t{values.size()});
    for (const std::string& value : values) append_text(bytes, value);
    return raw(std::move(key), kArrayType, std::move(bytes));
  }
  GgufBuilder& remove(std::string_view key) {
    std::erase_if(entries, [&](const Entry& entry) { return entry.key == key; });
    return *this;
  }

  GgufBuilder& tensor(std::string name, DType dtype, std::vector<uint64_t> dims, Bytes data) {
    tensors.push_back(
        {std::move(name), static_cast<uint32_t>(dtype), std::move(dims), std::move(data), {}});
    return *this;
  }
  GgufBuilder& floats(std::string name, std::vector<uint64_t> dims,
                      const std::vector<float>& values) {
    Bytes data;
    for (const float value : values) append(data, value);
    return tensor(std::move(name), DType::kF32, std::move(dims), std::move(data));
  }
  Tensor* find_tensor(std::string_view name) {
    for (Tensor& tensor : tensors) {
      if (tensor.name == name) return &tensor;
    }
    return nullptr;
  }

  // Everything of `file`, ready to be changed. Numbers come out in their widest type.
  static GgufBuilder copy_of(const GgufFile& file) {
    GgufBuilder copy;
    for (const auto& [key, value] : file.metadata().entries()) copy.set(key, value);
    copy.remove("general.alignment");
    for (const TensorInfo& info : file.tensors()) {
      copy.tensor(info.name, info.dtype, {info.dims.begin(), info.dims.end()},
                  {info.data, info.data + info.num_bytes});
    }
    return copy;
  }

  void set(const std::string& key, const MetadataValue& value) {
    std::visit(
        [&]<class T>(const T& held) {
          if constexpr (std::is_arithmetic_v<T>) {
            number(key, held);
          } else if constexpr (std::is_same_v<T, std::string>) {
            text(key, held);
          } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
            texts(key, held);
          } else {
            array(key, held);
          }
        },
        value);
  }

  // Header, metadata and tensor list; where each of their fields begins is added to `edges`, if
  // wanted.
  Bytes build_header(std::vector<std::pair<std::string, size_t>>* edges = nullptr) const {
    Bytes bytes;
    const auto edge = [&](const std::string& what) {
      if (edges != nullptr) edges->emplace_back(what, bytes.size());
    };
    edge("magic");
    for (const char letter : magic) append(bytes, letter);
    edge("version");
    append(bytes, version);
    edge("number of tensors");
    append(bytes, uint64_t{tensors.size()});
    edge("number of keys");
    append(bytes, uint64_t{entries.size()});
    for (const Entry& entry : entries) {
      edge("key " + entry.key);
      append_text(bytes, entry.key);
      edge("type of " + entry.key);
      append(bytes, entry.type);
      edge("value of " + entry.key);
      bytes.insert(bytes.end(), entry.value.begin(), entry.value.end());
    }
    uint64_t next_offset = 0;
    for (const Tensor& tensor : tensors) {
      edge("tensor " + tensor.name);
      append_text(bytes, tensor.name);
      edge("dimensions of " + tensor.name);
      append(bytes, static_cast<uint32_t>(tensor.dims.size()));
      for (const uint64_t dim : tensor.dims) append(bytes, dim);
      edge("type of " + tensor.name);
      append(bytes, tensor.type);
      edge("offset of " + tensor.name);
      append(bytes, tensor.offset.value_or(next_offset));
      next_offset = round_up(next_offset + tensor.data.size());
    }
    return bytes;
  }

  // The whole file; it ends with the last byte of the last tensor.
  Bytes build(std::vector<std::pair<std::string, size_t>>* edges = nullptr) const {
    Bytes bytes = build_header(edges);
    for (const Tensor& tensor : tensors) {
      bytes.resize(round_up(bytes.size()));
      if (edges != nullptr) edges->emplace_back("data of " + tensor.name, bytes.size());
      bytes.insert(bytes.end(), tensor.data.begin(), tensor.data.end());
    }
    return bytes;
  }

 private:
  uint64_t round_up(uint64_t size) const { return (size + alignment - 1) / alignment * alignment; }
};

}  // namespace winnow::test

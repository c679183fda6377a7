#include "weights/gguf_part.h"

#include <algorithm>
#include <cinttypes>
#include <numeric>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/byte_reader.h"
#include "base/checked.h"
#include "base/escape.h"

namespace winnow {
namespace {

// Value types as GGUF numbers them.
enum class ValueType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};
constexpr uint32_t kNumValueTypes = 13;

// Fewest bytes one value can take in the file: a string has at least its length.
uint64_t smallest_bytes(ValueType type) {
  constexpr uint64_t kBytes[kNumValueTypes] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
  return kBytes[static_cast<uint32_t>(type)];
}

// A key has length, one byte, type and value; a tensor has length, one byte, one dimension, type
// and offset.
constexpr uint64_t kSmallestEntryBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kSmallestTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

class PartParser {
 public:
  PartParser(std::span<const std::byte> bytes, const std::string& file_name)
      : bytes_(bytes),
        file_name_(escaped(file_name)),
        in_(bytes.first(std::min<uint64_t>(bytes.size(), kMaxGgufHeaderBytes))) {}

  Result<GgufPart> parse() {
    TRY_STATUS(read_header());
    for (uint64_t idx = 0; idx < num_entries_; ++idx) TRY_STATUS(read_entry());
    TRY_STATUS(read_alignment());
    for (uint64_t idx = 0; idx < num_tensors_; ++idx) TRY_STATUS(read_tensor());
    TRY_STATUS(place_tensors());
    return std::move(part_);
  }

 private:
  Status read_header();
  Status check_magic(std::string_view magic) const;
  Status check_count(const char* what, uint64_t count, uint64_t smallest_item_bytes) const;
  Status read_entry();
  Result<MetadataValue> read_value(ValueType type, const std::string& what);
  Result<MetadataValue> read_array(const std::string& what);
  Result<MetadataValue> read_integers(ValueType type, uint64_t count, const std::string& what);
  Result<int64_t> read_integer(ValueType type, const std::string& what);
  Result<double> read_float(ValueType type, const std::string& what);
  Result<bool> read_bool(const std::string& what);
  Result<std::string> read_string(const std::string& what, uint64_t max_bytes);
  Status read_alignment();
  Status read_tensor();
  Status read_dims(TensorInfo& tensor, const std::string& what);
  Status measure_tensor(TensorInfo& tensor, uint32_t type, const std::string& what) const;
  Status place_tensors();
  Status check_overlap() const;

  template <class T>
  Result<T> read(const std::string& what) {
    if (const std::optional<T> value = in_.read<T>()) return *value;
    return cut_off(what, sizeof(T));
  }

  Error corrupt(const std::string& message) const {
    return fail(ErrorCode::kCorruptFile, "%s: %s", file_name_.c_str(), message.c_str());
  }

  Error cut_off(const std::string& what, uint64_t num_bytes) const {
    if (in_.position() + in_.left() < bytes_.size()) {
      return fail(ErrorCode::kUnsupported,
                  "%s: %s: expected the header to take at most %" PRIu64 " bytes, found it longer",
                  file_name_.c_str(), what.c_str(), kMaxGgufHeaderBytes);
    }
    return fail(ErrorCode::kCorruptFile,
                "%s: %s: expected %" PRIu64 " bytes at offset %" PRIu64
                ", found the file to end after %" PRIu64 " bytes: it is truncated or damaged",
                file_name_.c_str(), what.c_str(), num_bytes, in_.position(),
                uint64_t{bytes_.size()});
  }

  std::span<const std::byte> bytes_;
  std::string file_name_;
  ByteReader in_;
  GgufPart part_;
  uint64_t num_tensors_ = 0;
  uint64_t num_entries_ = 0;
  uint64_t num_array_elements_ = 0;
  uint64_t alignment_ = 32;
  std::vector<uint64_t> offsets_;  // of the tensors, from the start of the data
};

std::string quote(std::string_view text) { return "'" + escaped(text, 80) + "'"; }

std::string format_u64(uint64_t value) { return std::to_string(value); }

Status PartParser::check_magic(std::string_view magic) const {
  if (magic == "GGUF") return Ok{};
  const char* hint = "not a GGUF model file";
  constexpr std::string_view kOldMagics[] = {"tjgg", "fmgg", "lmgg", "algg"};
  if (std::ranges::find(kOldMagics, magic) != std::end(kOldMagics)) {
    hint = "a model from before GGUF, which must be converted anew";
  } else if (magic == "vers") {
    hint = "probably a git-lfs pointer in place of the model itself";
  } else if (magic.starts_with("PK")) {
    hint = "a zip archive, such as a PyTorch checkpoint";
  }
  return corrupt("magic: expected 'GGUF', found " + quote(magic) + ": " + hint);
}

Status PartParser::read_header() {
  const std::optional<std::string_view> magic = in_.read_text(4);
  if (!magic) return cut_off("magic", 4);
  TRY_STATUS(check_magic(*magic));
  TRY(const uint32_t version, read<uint32_t>("version"));
  if (version != 0 && (version & 0xFFFF) == 0) {
    return fail(ErrorCode::kUnsupported,
                "%s: expected a little-endian file, found a big-endian file (version %u)",
                file_name_.c_str(), __builtin_bswap32(version));
  }
  if (version != 2 && version != 3) {
    return fail(ErrorCode::kUnsupported, "%s: GGUF version: expected 2 or 3, found %u",
                file_name_.c_str(), version);
  }
  part_.version = static_cast<int>(version);
  TRY(num_tensors_, read<uint64_t>("number of tensors"));
  TRY(num_entries_, read<uint64_t>("number of metadata keys"));
  TRY_STATUS(check_count("number of metadata keys", num_entries_, kSmallestEntryBytes));
  return check_count("number of tensors", num_tensors_, kSmallestTensorBytes);
}

Status PartParser::check_count(const char* what, uint64_t count,
                               uint64_t smallest_item_bytes) const {
  if (count > kMaxGgufEntries || !(Checked(count) * smallest_item_bytes).at_most(in_.left())) {
    const uint64_t most = std::min(kMaxGgufEntries, in_.left() / smallest_item_bytes);
    return corrupt(std::string(what) + ": expected at most " + format_u64(most) + " in a file of " +
                   format_u64(bytes_.size()) + " bytes, found " + format_u64(count));
  }
  return Ok{};
}

Status PartParser::read_entry() {
  const std::string position = "metadata key " + format_u64(part_.metadata.entries().size());
  TRY(std::string key, read_string(position + ", its name", kMaxGgufNameBytes));
  if (key.empty()) return corrupt(position + ": expected a name, found an empty one");
  const std::string what = "metadata key " + quote(key);
  if (part_.metadata.has(key)) return corrupt(what + ": expected once, found twice");
  TRY(const uint32_t type, read<uint32_t>(what));
  if (type >= kNumValueTypes) {
    return corrupt(what + ": expected a value type from 0 to 12, found " + format_u64(type));
  }
  TRY(MetadataValue value, read_value(static_cast<ValueType>(type), what));
  part_.metadata.set(std::move(key), std::move(value));
  return Ok{};
}

Result<MetadataValue> PartParser::read_value(ValueType type, const std::string& what) {
  switch (type) {
    case ValueType::kBool: {
      TRY(const bool value, read_bool(what));
      return MetadataValue(value);
    }
    case ValueType::kF32:
    case ValueType::kF64: {
      TRY(const double value, read_float(type, what));
      return MetadataValue(value);
    }
    case ValueType::kString: {
      TRY(std::string value, read_string(what, kMaxGgufHeaderBytes));
      return MetadataValue(std::move(value));
    }
    case ValueType::kU64: {
      TRY(const uint64_t value, read<uint64_t>(what));
      if (value > INT64_MAX) return MetadataValue(value);
      return MetadataValue(static_cast<int64_t>(value));
    }
    case ValueType::kArray:
      return read_array(what);
    default: {
      TRY(const int64_t value, read_integer(type, what));
      return MetadataValue(value);
    }
  }
}

Result<MetadataValue> PartParser::read_array(const std::string& what) {
  TRY(const uint32_t raw_type, read<uint32_t>(what));
  TRY(const uint64_t count, read<uint64_t>(what));
  if (raw_type >= kNumValueTypes) {
    return corrupt(what + ": expected elements of a type from 0 to 12, found " +
                   format_u64(raw_type));
  }
  const ValueType type = static_cast<ValueType>(raw_type);
  if (type == ValueType::kArray) {
    return corrupt(what + ": expected an array of plain values, found an array of arrays");
  }
  const uint64_t most =
      std::min(in_.left() / smallest_bytes(type), kMaxGgufArrayElements - num_array_elements_);
  if (count > most) {
    return corrupt(what + ": expected at most " + format_u64(most) + " array elements, found " +
                   format_u64(count));
  }
  num_array_elements_ += count;
  if (type == ValueType::kBool) {
    std::vector<bool> values(count);
    for (uint64_t idx = 0; idx < count; ++idx) {
      TRY(const bool value, read_bool(what));
      values[idx] = value;
    }
    return MetadataValue(std::move(values));
  }
  if (type == ValueType::kF32 || type == ValueType::kF64) {
    std::vector<double> values(count);
    for (double& value : values) {
      TRY(value, read_float(type, what));
    }
    return MetadataValue(std::move(values));
  }
  if (type == ValueType::kString) {
    std::vector<std::string> values(count);
    for (std::string& value : values) {
      TRY(value, read_string(what, kMaxGgufHeaderBytes));
    }
    return MetadataValue(std::move(values));
  }
  return read_integers(type, count, what);
}

Result<MetadataValue> PartParser::read_integers(ValueType type, uint64_t count,
                                                const std::string& what) {
  std::vector<int64_t> values(count);
  for (int64_t& value : values) {
    TRY(value, read_integer(type, what));
  }
  return MetadataValue(std::move(values));
}

Result<int64_t> PartParser::read_integer(ValueType type, const std::string& what) {
  const auto widened = [&]<class T>(T) -> Result<int64_t> {
    TRY(const T value, read<T>(what));
    return static_cast<int64_t>(value);
  };
  switch (type) {
    case ValueType::kU8:
      return widened(uint8_t{});
    case ValueType::kI8:
      return widened(int8_t{});
    case ValueType::kU16:
      return widened(uint16_t{});
    case ValueType::kI16:
      return widened(int16_t{});
    case ValueType::kU32:
      return widened(uint32_t{});
    case ValueType::kI32:
      return widened(int32_t{});
    case ValueType::kI64:
      return widened(int64_t{});
    default:
      break;
  }
  TRY(const uint64_t value, read<uint64_t>(what));
  if (value > INT64_MAX) {
    return corrupt(what + ": expected an array of numbers up to 2^63 - 1, found " +
                   format_u64(value));
  }
  return static_cast<int64_t>(value);
}

Result<double> PartParser::read_float(ValueType type, const std::string& what) {
  if (type == ValueType::kF64) return read<double>(what);
  TRY(const float value, read<float>(what));
  return static_cast<double>(value);
}

Result<bool> PartParser::read_bool(const std::string& what) {
  TRY(const uint8_t value, read<uint8_t>(what));
  return value != 0;
}

Result<std::string> PartParser::read_string(const std::string& what, uint64_t max_bytes) {
  TRY(const uint64_t num_bytes, read<uint64_t>(what));
  if (num_bytes > max_bytes) {
    return corrupt(what + ": expected a string of at most " + format_u64(max_bytes) +
                   " bytes, found a length of " + format_u64(num_bytes));
  }
  const std::optional<std::string_view> text = in_.read_text(num_bytes);
  if (!text) return cut_off(what, num_bytes);
  return std::string(*text);
}

Status PartParser::read_alignment() {
  const std::string_view key = "general.alignment";
  const MetadataValue* value = part_.metadata.find(key);
  if (value == nullptr) return Ok{};
  const int64_t* alignment = std::get_if<int64_t>(value);
  const std::string expected = "general.alignment: expected a multiple of 8 from 8 to " +
                               format_u64(kMaxGgufAlignment) + ", found ";
  if (alignment == nullptr) return corrupt(expected + "a value of another type or size");
  const bool in_range = *alignment >= 8 && *alignment <= static_cast<int64_t>(kMaxGgufAlignment);
  if (!in_range || *alignment % 8 != 0) return corrupt(expected + std::to_string(*alignment));
  alignment_ = static_cast<uint64_t>(*alignment);
  return Ok{};
}

Status PartParser::read_tensor() {
  const std::string position = "tensor " + format_u64(part_.tensors.size());
  TensorInfo tensor;
  TRY(tensor.name, read_string(position + ", its name", kMaxGgufNameBytes));
  if (tensor.name.empty()) return corrupt(position + ": expected a name, found an empty one");
  const std::string what = "tensor " + quote(tensor.name);
  TRY_STATUS(read_dims(tensor, what));
  TRY(const uint32_t type, read<uint32_t>(what));
  TRY(const uint64_t offset, read<uint64_t>(what));
  TRY_STATUS(measure_tensor(tensor, type, what));
  if (offset % alignment_ != 0) {
    return corrupt(what + ": expected its offset to be a multiple of the alignment " +
                   format_u64(alignment_) + ", found " + format_u64(offset));
  }
  offsets_.push_back(offset);
  part_.tensors.push_back(std::move(tensor));
  return Ok{};
}

Status PartParser::read_dims(TensorInfo& tensor, const std::string& what) {
  TRY(const uint32_t num_dims, read<uint32_t>(what));
  if (num_dims < 1 || num_dims > kMaxGgufDims) {
    return corrupt(what + ": expected 1 to " + format_u64(kMaxGgufDims) + " dimensions, found " +
                   format_u64(num_dims));
  }
  for (uint32_t idx = 0; idx < num_dims; ++idx) {
    TRY(const uint64_t dim, read<uint64_t>(what));
    if (dim < 1 || dim > INT64_MAX) {
      return corrupt(what + ": expected dimension " + format_u64(idx) +
                     " to be from 1 to 2^63 - 1, found " + format_u64(dim));
    }
    tensor.dims.push_back(static_cast<int64_t>(dim));
  }
  return Ok{};
}

// Sets the type and the size in bytes.
Status PartParser::measure_tensor(TensorInfo& tensor, uint32_t type,
                                  const std::string& what) const {
  const std::optional<DType> dtype = dtype_from_gguf(type);
  if (!dtype) {
    return fail(ErrorCode::kUnsupported,
                "%s: %s: expected a supported type (%s), found type number %u", file_name_.c_str(),
                what.c_str(), supported_dtype_names().c_str(), type);
  }
  tensor.dtype = *dtype;
  const DTypeInfo& info = dtype_info(*dtype);
  const uint64_t group_size = static_cast<uint64_t>(info.group_size);
  const uint64_t cols = static_cast<uint64_t>(tensor.dims[0]);
  if (cols % group_size != 0) {
    return corrupt(what + ": expected rows of a multiple of " + format_u64(group_size) +
                   " elements for type " + std::string(info.name) + ", found " + format_u64(cols));
  }
  Checked num_bytes = Checked(cols / group_size) * static_cast<uint64_t>(info.group_bytes);
  Checked num_elements = cols;
  for (size_t idx = 1; idx < tensor.dims.size(); ++idx) {
    num_bytes = num_bytes * static_cast<uint64_t>(tensor.dims[idx]);
    num_elements = num_elements * static_cast<uint64_t>(tensor.dims[idx]);
  }
  if (!num_bytes.at_most(INT64_MAX) || !num_elements.at_most(INT64_MAX)) {
    return corrupt(what + ": expected a size below 2^63, found dimensions whose product is larger");
  }
  tensor.num_bytes = static_cast<int64_t>(*num_bytes.get());
  return Ok{};
}

// Holds every offset against the file's size and turns it into a pointer.
Status PartParser::place_tensors() {
  std::unordered_set<std::string_view> names;
  for (size_t idx = 0; idx < part_.tensors.size(); ++idx) {
    TensorInfo& tensor = part_.tensors[idx];
    const std::string what = "tensor " + quote(tensor.name);
    if (!names.insert(tensor.name).second) return corrupt(what + ": expected once, found twice");
    const uint64_t num_bytes = static_cast<uint64_t>(tensor.num_bytes);
    const Checked begin = Checked(in_.position()).round_up(alignment_) + offsets_[idx];
    if (!(begin + num_bytes).at_most(bytes_.size())) {
      const std::string place = begin.valid() ? format_u64(*begin.get()) : "an offset beyond 2^64";
      return corrupt(what + ": expected " + format_u64(num_bytes) + " bytes at " + place +
                     ", found the file to end after " + format_u64(bytes_.size()) +
                     " bytes: it is truncated or damaged");
    }
    tensor.data = bytes_.data() + *begin.get();
  }
  return check_overlap();
}

Status PartParser::check_overlap() const {
  std::vector<size_t> order(part_.tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t idx) { return offsets_[idx]; });
  for (size_t idx = 1; idx < order.size(); ++idx) {
    const TensorInfo& before = part_.tensors[order[idx - 1]];
    const TensorInfo& after = part_.tensors[order[idx]];
    if (before.data + before.num_bytes > after.data) {
      return corrupt("tensor " + quote(after.name) +
                     ": expected bytes of its own, found them shared with tensor " +
                     quote(before.name));
    }
  }
  return Ok{};
}

}  // namespace

Result<GgufPart> parse_gguf_part(std::span<const std::byte> bytes, const std::string& file_name) {
  return PartParser(bytes, file_name).parse();
}

}  // namespace winnow

// Puts the parts of a model together: which files belong to it, and that they agree.
#include "weights/gguf.h"

#include <cinttypes>
#include <cstdio>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/escape.h"
#include "weights/gguf_part.h"

namespace winnow {
namespace {

constexpr int64_t kMaxParts = 99999;  // what five digits in a file name can say

struct SplitKeys {
  int64_t part_idx = 0;
  int64_t num_parts = 1;
  std::optional<int64_t> num_tensors;  // of all parts
};

Error in_file(const std::string& path, Error error) {
  error.message = escaped(path) + ": " + error.message;
  return error;
}

Result<SplitKeys> read_split_keys(const Metadata& metadata, const std::string& path) {
  SplitKeys keys;
  const auto read = [&](const char* key, int64_t fallback, int64_t max) -> Result<int64_t> {
    auto value = metadata.integer_or(key, fallback, 0, max);
    if (!value.ok()) return in_file(path, std::move(value).error());
    return value;
  };
  TRY(keys.num_parts, read("split.count", 1, kMaxParts));
  TRY(keys.part_idx, read("split.no", 0, kMaxParts - 1));
  if (metadata.has("split.tensors.count")) {
    TRY(keys.num_tensors, read("split.tensors.count", 0, INT64_MAX));
  }
  return keys;
}

std::string part_suffix(int64_t part_idx, int64_t num_parts) {
  char text[64];
  std::snprintf(text, sizeof(text), "-%05" PRId64 "-of-%05" PRId64 ".gguf", part_idx + 1,
                num_parts);
  return text;
}

// The path without "-0000I-of-0000N.gguf", or nothing if it does not end so.
std::optional<std::string> split_prefix(const std::string& path, const SplitKeys& keys) {
  const std::string suffix = part_suffix(keys.part_idx, keys.num_parts);
  if (!path.ends_with(suffix)) return std::nullopt;
  return path.substr(0, path.size() - suffix.size());
}

Error not_the_first(const std::string& path, const SplitKeys& keys) {
  const std::optional<std::string> prefix = split_prefix(path, keys);
  const std::string first = part_suffix(0, keys.num_parts);
  const std::string expected =
      prefix ? "'" + escaped(*prefix + first) + "'" : "the file that ends in '" + first + "'";
  return fail(ErrorCode::kInvalidArgument,
              "%s: expected the first part of a split model, found part %" PRId64 " of %" PRId64
              ": open %s",
              escaped(path).c_str(), keys.part_idx + 1, keys.num_parts, expected.c_str());
}

Status check_agreement(const std::string& path, const SplitKeys& first, const SplitKeys& part,
                       int64_t part_idx) {
  if (part.num_parts != first.num_parts) {
    return fail(ErrorCode::kCorruptFile,
                "%s: split.count: expected %" PRId64 " as in the first part, found %" PRId64,
                escaped(path).c_str(), first.num_parts, part.num_parts);
  }
  if (part.part_idx != part_idx) {
    return fail(ErrorCode::kCorruptFile, "%s: split.no: expected %" PRId64 ", found %" PRId64,
                escaped(path).c_str(), part_idx, part.part_idx);
  }
  if (part.num_tensors != first.num_tensors) {
    const auto text = [](std::optional<int64_t> count) {
      return count ? std::to_string(*count) : "nothing";
    };
    return fail(ErrorCode::kCorruptFile,
                "%s: split.tensors.count: expected %s as in the first part, found %s",
                escaped(path).c_str(), text(first.num_tensors).c_str(),
                text(part.num_tensors).c_str());
  }
  return Ok{};
}

}  // namespace

struct GgufFile::Impl {
  std::vector<MappedFile> files;
  std::vector<std::byte> memory;  // instead of files, when opened from memory
  int version = 0;
  uint64_t file_bytes = 0;
  Metadata metadata;
  std::vector<TensorInfo> tensors;
  std::unordered_map<std::string_view, size_t>
      index;  // name -> place in `tensors`, whose strings it views

  Result<SplitKeys> add_first(std::span<const std::byte> bytes, const std::string& path);
  Result<SplitKeys> add_part(const std::string& path, MapMode mode);
  Status add_other_parts(const std::string& path, MapMode mode, const SplitKeys& first);
  Status build_index(const std::string& path);
};

Result<SplitKeys> GgufFile::Impl::add_first(std::span<const std::byte> bytes,
                                            const std::string& path) {
  TRY(GgufPart part, parse_gguf_part(bytes, path));
  TRY(const SplitKeys keys, read_split_keys(part.metadata, path));
  if (keys.part_idx != 0) return not_the_first(path, keys);
  version = part.version;
  file_bytes = bytes.size();
  metadata = std::move(part.metadata);
  tensors = std::move(part.tensors);
  return keys;
}

Result<SplitKeys> GgufFile::Impl::add_part(const std::string& path, MapMode mode) {
  TRY(MappedFile file, MappedFile::open(path, mode));
  TRY(GgufPart part, parse_gguf_part(file.bytes(), path));
  TRY(const SplitKeys keys, read_split_keys(part.metadata, path));
  file_bytes += file.bytes().size();
  files.push_back(std::move(file));
  for (TensorInfo& tensor : part.tensors) tensors.push_back(std::move(tensor));
  return keys;
}

Status GgufFile::Impl::add_other_parts(const std::string& path, MapMode mode,
                                       const SplitKeys& first) {
  if (first.num_parts <= 1) return Ok{};
  const std::optional<std::string> prefix = split_prefix(path, first);
  if (!prefix) {
    return fail(
        ErrorCode::kCorruptFile,
        "%s: this is the first part of a model split into %" PRId64
        " files; expected a name that ends in '%s' with the other parts beside it (parts cannot be "
        "joined by concatenation)",
        escaped(path).c_str(), first.num_parts, part_suffix(0, first.num_parts).c_str());
  }
  for (int64_t part_idx = 1; part_idx < first.num_parts; ++part_idx) {
    const std::string part_path = *prefix + part_suffix(part_idx, first.num_parts);
    auto keys = add_part(part_path, mode);
    if (!keys.ok() && keys.error().code == ErrorCode::kNotFound) {
      return fail(ErrorCode::kNotFound,
                  "%s: expected part %" PRId64 " of %" PRId64 " here, found no such file",
                  escaped(part_path).c_str(), part_idx + 1, first.num_parts);
    }
    if (!keys.ok()) return std::move(keys).error();
    TRY_STATUS(check_agreement(part_path, first, *keys, part_idx));
  }
  return Ok{};
}

Status GgufFile::Impl::build_index(const std::string& path) {
  index.reserve(tensors.size());
  for (size_t idx = 0; idx < tensors.size(); ++idx) {
    if (!index.emplace(tensors[idx].name, idx).second) {
      return fail(ErrorCode::kCorruptFile, "%s: tensor '%s': expected in one part, found in two",
                  escaped(path).c_str(), escaped(tensors[idx].name, 80).c_str());
    }
  }
  return Ok{};
}

Result<std::unique_ptr<GgufFile>> GgufFile::open(const std::string& path, MapMode mode) {
  auto impl = std::make_unique<Impl>();
  TRY(MappedFile file, MappedFile::open(path, mode));
  TRY(const SplitKeys first, impl->add_first(file.bytes(), path));
  impl->files.push_back(std::move(file));
  TRY_STATUS(impl->add_other_parts(path, mode, first));
  TRY_STATUS(impl->build_index(path));
  const int64_t found = static_cast<int64_t>(impl->tensors.size());
  if (first.num_parts > 1 && first.num_tensors && *first.num_tensors != found) {
    return fail(ErrorCode::kCorruptFile,
                "%s: split.tensors.count: expected %" PRId64
                " tensors in all parts, found %" PRId64,
                escaped(path).c_str(), *first.num_tensors, found);
  }
  return std::unique_ptr<GgufFile>(new GgufFile(std::move(impl)));
}

Result<std::unique_ptr<GgufFile>> GgufFile::open_bytes(std::vector<std::byte> bytes,
                                                       const std::string& name) {
  auto impl = std::make_unique<Impl>();
  impl->memory = std::move(bytes);
  TRY(const SplitKeys first, impl->add_first(impl->memory, name));
  if (first.num_parts > 1) {
    return fail(ErrorCode::kUnsupported,
                "%s: expected a whole model in memory, found the first of %" PRId64 " parts",
                escaped(name).c_str(), first.num_parts);
  }
  TRY_STATUS(impl->build_index(name));
  return std::unique_ptr<GgufFile>(new GgufFile(std::move(impl)));
}

GgufFile::GgufFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GgufFile::~GgufFile() = default;

const Metadata& GgufFile::metadata() const { return impl_->metadata; }
const std::vector<TensorInfo>& GgufFile::tensors() const { return impl_->tensors; }
int GgufFile::version() const { return impl_->version; }
uint64_t GgufFile::file_bytes() const { return impl_->file_bytes; }
int GgufFile::num_parts() const {
  return impl_->files.empty() ? 1 : static_cast<int>(impl_->files.size());
}

std::vector<std::span<const std::byte>> GgufFile::part_bytes() const {
  if (impl_->files.empty()) return {impl_->memory};
  std::vector<std::span<const std::byte>> parts;
  for (const MappedFile& file : impl_->files) parts.push_back(file.bytes());
  return parts;
}

const TensorInfo* GgufFile::find(std::string_view name) const {
  const auto found = impl_->index.find(name);
  return found == impl_->index.end() ? nullptr : &impl_->tensors[found->second];
}

Status GgufFile::check_unchanged() const {
  for (const MappedFile& file : impl_->files) TRY_STATUS(file.check_unchanged());
  return Ok{};
}

}  // namespace winnow

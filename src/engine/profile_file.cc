#include "engine/profile_file.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <span>
#include <string_view>

#include "base/escape.h"
#include "base/mapped_file.h"

namespace winnow {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

constexpr std::string_view kMagic = "WINPROF1";

uint64_t fnv1a(std::string_view bytes, uint64_t hash = 0xcbf29ce484222325U) {
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  }
  return hash;
}

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

std::string_view bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

class Writer {
 public:
  template <class T>
  void put(const T& value) {
    bytes_ += bytes_of(value);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_ = std::string(kMagic);
};

// Takes numbers off the front; after a read past the end everything is zero or empty.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  T take() {
    T value = {};
    if (has(sizeof(T))) {
      std::memcpy(&value, rest_.data(), sizeof(T));
      rest_.remove_prefix(sizeof(T));
    }
    return value;
  }
  std::vector<float> floats(uint64_t count) {
    if (count > rest_.size() / sizeof(float) || !has(count * sizeof(float))) {
      complete_ = false;
      return {};
    }
    std::vector<float> values(count);
    std::memcpy(values.data(), rest_.data(), count * sizeof(float));
    rest_.remove_prefix(count * sizeof(float));
    return values;
  }
  bool complete() const { return complete_ && rest_.empty(); }

 private:
  bool has(uint64_t size) {
    if (size > rest_.size()) complete_ = false;
    return complete_;
  }

  std::string_view rest_;
  bool complete_ = true;
};

bool all_finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return std::isfinite(value); });
}

Error corrupt(const std::string& path, const char* expected, const char* found) {
  return fail(ErrorCode::kCorruptFile, "%s: expected %s, found %s", escaped(path).c_str(), expected,
              found);
}

Result<SparseProfile::Layer> read_layer(Reader& reader, const LayerConfig& config,
                                        const std::string& path) {
  const auto kv_heads = reader.take<uint32_t>();
  const auto head_dim = reader.take<uint32_t>();
  const bool unused = kv_heads == 0 && head_dim == 0;
  const bool fits = kv_heads == static_cast<uint32_t>(config.kv_heads) &&
                    head_dim == static_cast<uint32_t>(config.head_dim);
  if (!unused && !fits) {
    return corrupt(path, "the heads and widths of the model's layers", "others");
  }
  const uint64_t numbers = uint64_t{kv_heads} * head_dim * head_dim;
  SparseProfile::Layer layer;
  layer.moments.keys = reader.floats(numbers);
  layer.moments.queries = reader.floats(numbers);
  if (!all_finite(layer.moments.keys) || !all_finite(layer.moments.queries)) {
    return corrupt(path, "finite numbers", "NaN or infinity");
  }
  return layer;
}

}  // namespace

uint64_t model_fingerprint(const Model& model) {
  constexpr int64_t kSampleBytes = 256;
  uint64_t hash = fnv1a(model.config().architecture);
  for (const TensorInfo& tensor : model.file().tensors()) {
    hash = fnv1a(tensor.name, hash);
    hash = fnv1a(bytes_of(tensor.dtype), hash);
    for (const int64_t dim : tensor.dims) hash = fnv1a(bytes_of(dim), hash);
    const auto size = static_cast<size_t>(std::min(kSampleBytes, tensor.num_bytes));
    hash = fnv1a({reinterpret_cast<const char*>(tensor.data), size}, hash);
  }
  return hash;
}

Status save_profile(const SparseProfile& profile, uint64_t fingerprint, const std::string& path) {
  Writer writer;
  writer.put(fingerprint);
  writer.put(static_cast<uint32_t>(profile.layers.size()));
  for (const SparseProfile::Layer& layer : profile.layers) {
    writer.put(static_cast<uint32_t>(layer.kv_heads));
    writer.put(static_cast<uint32_t>(layer.head_dim));
    writer.put(layer.moments.keys);
    writer.put(layer.moments.queries);
  }
  writer.put(profile.tau_factor);
  writer.put(fnv1a(writer.bytes()));

  const std::string unfinished = path + "." + std::to_string(getpid());
  std::ofstream file(unfinished, std::ios::binary);
  file << writer.bytes();
  file.close();
  if (!file.good() || std::rename(unfinished.c_str(), path.c_str()) != 0) {
    const int error = errno;
    std::remove(unfinished.c_str());
    return fail(ErrorCode::kIo, "%s: expected to write the profile, found '%s'",
                escaped(path).c_str(), std::strerror(error));
  }
  return Ok{};
}

Result<SparseProfile> load_profile(const std::string& path, const Model& model) {
  TRY(const MappedFile file, MappedFile::open(path, MapMode::kRead));
  const std::string_view bytes(reinterpret_cast<const char*>(file.bytes().data()),
                               file.bytes().size());
  constexpr size_t kHashBytes = sizeof(uint64_t);
  if (!bytes.starts_with(kMagic) || bytes.size() < kMagic.size() + kHashBytes) {
    return corrupt(path, "a profile of sparse attention", "another file");
  }
  const std::string_view hashed = bytes.substr(0, bytes.size() - kHashBytes);
  if (Reader(bytes.substr(hashed.size())).take<uint64_t>() != fnv1a(hashed)) {
    return corrupt(path, "the checksum of its contents", "another");
  }
  Reader reader(hashed.substr(kMagic.size()));
  if (reader.take<uint64_t>() != model_fingerprint(model)) {
    return corrupt(path, "a profile of this model", "that of another model");
  }
  const std::vector<LayerConfig>& layers = model.config().layers;
  if (reader.take<uint32_t>() != layers.size()) {
    return corrupt(path, "as many layers as the model has", "another number");
  }
  SparseProfile profile;
  for (const LayerConfig& config : layers) {
    TRY(SparseProfile::Layer layer, read_layer(reader, config, path));
    profile.layers.push_back(std::move(layer));
  }
  profile.tau_factor = reader.take<float>();
  if (!(profile.tau_factor > 0 && profile.tau_factor <= 1e6F)) {
    return corrupt(path, "a factor of tau above 0", "another number");
  }
  if (!reader.complete()) return corrupt(path, "its end after the last layer", "another size");
  return profile;
}

}  // namespace winnow

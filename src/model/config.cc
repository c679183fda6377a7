#include "model/config.h"

#include <cmath>
#include <string>

#include "base/escape.h"
#include "model/architectures.h"
#include "tensor/kv_layout.h"

namespace winnow {
namespace {

// Far beyond any model; small enough that the product of all of them, the bytes of a KV cache,
// stays below 2^63.
constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxWidth = 1 << 20;
constexpr int64_t kMaxHeads = 1 << 14;
constexpr int64_t kMaxHeadDim = 256;
constexpr int64_t kMaxContext = int64_t{1} << 26;
// Likewise of numbers: beyond these the arithmetic of float has nothing to say.
constexpr double kMinNormEpsilon = 1e-20;
constexpr double kMaxNormEpsilon = 0.1;
constexpr double kMinAttentionScale = 1e-6;
constexpr double kMaxAttentionScale = 1e3;
constexpr double kMaxSoftCap = 1e6;  // 0 = none
constexpr double kMinRopeFactor = 1e-3;
constexpr double kMaxRopeFactor = 1e6;

const Architecture* find_architecture(std::string_view name) {
  for (const Architecture& architecture : architectures()) {
    if (architecture.name == name) return &architecture;
  }
  return nullptr;
}

std::string supported_names() {
  std::string names;
  for (const Architecture& architecture : architectures()) {
    if (!names.empty()) names += ", ";
    names += architecture.name;
  }
  return names;
}

// Reads keys below the architecture's own prefix.
class ArchitectureKeys {
 public:
  ArchitectureKeys(const Metadata& metadata, std::string_view architecture)
      : metadata_(metadata), prefix_(std::string(architecture) + ".") {}

  bool has(std::string_view key) const { return metadata_.has(name(key)); }
  Result<int64_t> integer(std::string_view key, int64_t min, int64_t max) const {
    return metadata_.integer(name(key), min, max);
  }
  Result<int64_t> integer_or(std::string_view key, int64_t fallback, int64_t min,
                             int64_t max) const {
    return metadata_.integer_or(name(key), fallback, min, max);
  }
  Result<double> number(std::string_view key, double min, double max) const {
    return metadata_.number(name(key), min, max);
  }
  Result<double> number_or(std::string_view key, double fallback, double min, double max) const {
    return metadata_.number_or(name(key), fallback, min, max);
  }
  Result<std::string> string_or(std::string_view key, std::string_view fallback) const {
    return metadata_.string_or(name(key), fallback);
  }
  // One number per layer; `fallback_key` holds the values if `key` is missing.
  Result<std::vector<int64_t>> per_layer(std::string_view key, std::string_view fallback_key,
                                         int64_t num_layers, int64_t min, int64_t max) const {
    const bool use_fallback = !fallback_key.empty() && !has(key);
    return metadata_.integers(name(use_fallback ? fallback_key : key), num_layers, min, max);
  }
  std::string name(std::string_view key) const { return prefix_ + std::string(key); }

 private:
  const Metadata& metadata_;
  std::string prefix_;
};

Result<RopeConfig> read_rope(const ArchitectureKeys& keys, int64_t head_dim) {
  RopeConfig rope;
  TRY(const int64_t dims, keys.integer_or("rope.dimension_count", head_dim, 0, head_dim));
  if (dims % 2 != 0) {
    return fail(ErrorCode::kCorruptFile, "%s: expected an even number, found %lld",
                keys.name("rope.dimension_count").c_str(), static_cast<long long>(dims));
  }
  rope.dims = static_cast<int32_t>(dims);
  TRY(rope.base, keys.number_or("rope.freq_base", 10000.0, kMinRopeBase, kMaxRopeBase));
  // A file that gives a factor alone means the linear one.
  TRY(const std::string scaling, keys.string_or("rope.scaling.type", "linear"));
  if (scaling != "none" && scaling != "linear") {
    return fail(ErrorCode::kUnsupported, "%s: supported are none and linear, found %s",
                keys.name("rope.scaling.type").c_str(), escaped(scaling).c_str());
  }
  TRY(const double old_style_scale,
      keys.number_or("rope.scale_linear", 1.0, kMinRopeFactor, kMaxRopeFactor));
  TRY(const double factor,
      keys.number_or("rope.scaling.factor", old_style_scale, kMinRopeFactor, kMaxRopeFactor));
  if (scaling == "linear") rope.linear_scale = factor;
  return rope;
}

Result<int64_t> read_head_dim(const ArchitectureKeys& keys, int64_t width, int64_t heads) {
  if (!keys.has("attention.key_length") && width % heads != 0) {
    return fail(ErrorCode::kCorruptFile, "%s: expected a divisor of the width %lld, found %lld",
                keys.name("attention.head_count").c_str(), static_cast<long long>(width),
                static_cast<long long>(heads));
  }
  TRY(const int64_t head_dim, keys.integer_or("attention.key_length", width / heads, 1, INT32_MAX));
  TRY(const int64_t value_dim, keys.integer_or("attention.value_length", head_dim, 1, INT32_MAX));
  if (value_dim != head_dim) {
    return fail(ErrorCode::kUnsupported, "%s: expected the key's width %lld, found %lld",
                keys.name("attention.value_length").c_str(), static_cast<long long>(head_dim),
                static_cast<long long>(value_dim));
  }
  if (head_dim % kKvLanes != 0 || head_dim > kMaxHeadDim) {
    return fail(ErrorCode::kUnsupported,
                "%s: head width must be a multiple of %d up to %lld, found %lld",
                keys.name("attention.key_length").c_str(), kKvLanes,
                static_cast<long long>(kMaxHeadDim), static_cast<long long>(head_dim));
  }
  return head_dim;
}

// What the keys common to all architectures say of every layer.
Status read_layers(const ArchitectureKeys& keys, ModelConfig& config) {
  TRY(const int64_t num_layers, keys.integer("block_count", 1, kMaxLayers));
  TRY(const auto heads, keys.per_layer("attention.head_count", "", num_layers, 1, kMaxHeads));
  TRY(const auto kv_heads,
      keys.per_layer("attention.head_count_kv", "attention.head_count", num_layers, 1, kMaxHeads));
  TRY(const auto ffn_widths, keys.per_layer("feed_forward_length", "", num_layers, 1, kMaxWidth));
  TRY(const double soft_cap, keys.number_or("attn_logit_softcapping", 0.0, 0.0, kMaxSoftCap));
  for (size_t i = 0; i < static_cast<size_t>(num_layers); ++i) {
    if (heads[i] % kv_heads[i] != 0) {
      return fail(ErrorCode::kCorruptFile,
                  "%s: layer %zu: %lld query heads are not a multiple of %lld KV heads",
                  keys.name("attention.head_count_kv").c_str(), i, static_cast<long long>(heads[i]),
                  static_cast<long long>(kv_heads[i]));
    }
    LayerConfig layer;
    layer.heads = static_cast<int32_t>(heads[i]);
    layer.kv_heads = static_cast<int32_t>(kv_heads[i]);
    TRY(const int64_t head_dim, read_head_dim(keys, config.width, heads[i]));
    layer.head_dim = static_cast<int32_t>(head_dim);
    TRY(layer.rope, read_rope(keys, head_dim));
    TRY(const double scale,
        keys.number_or("attention.scale", 1.0 / std::sqrt(static_cast<double>(head_dim)),
                       kMinAttentionScale, kMaxAttentionScale));
    layer.attention_scale = static_cast<float>(scale);
    layer.attention_soft_cap = static_cast<float>(soft_cap);
    layer.ffn_width = static_cast<int32_t>(ffn_widths[i]);
    config.layers.push_back(layer);
  }
  return Ok{};
}

}  // namespace

Result<ModelConfig> read_model_config(const Metadata& metadata) {
  ModelConfig config;
  TRY(config.architecture, metadata.string("general.architecture"));
  const Architecture* architecture = find_architecture(config.architecture);
  if (architecture == nullptr) {
    return fail(ErrorCode::kUnsupported,
                "general.architecture '%s' is not supported; supported are: %s",
                escaped(config.architecture).c_str(), supported_names().c_str());
  }
  const ArchitectureKeys keys(metadata, config.architecture);
  TRY(const int64_t experts, keys.integer_or("expert_count", 0, 0, INT32_MAX));
  if (experts > 0) {
    return fail(ErrorCode::kUnsupported,
                "%s: mixture-of-experts models are not supported, found %lld experts",
                keys.name("expert_count").c_str(), static_cast<long long>(experts));
  }
  TRY(const int64_t width, keys.integer("embedding_length", 1, kMaxWidth));
  config.width = static_cast<int32_t>(width);
  TRY(config.context_tokens, keys.integer("context_length", 1, kMaxContext));
  TRY(const double epsilon,
      keys.number("attention.layer_norm_rms_epsilon", kMinNormEpsilon, kMaxNormEpsilon));
  config.norm_epsilon = static_cast<float>(epsilon);
  TRY(const double final_soft_cap,
      keys.number_or("final_logit_softcapping", 0.0, 0.0, kMaxSoftCap));
  config.final_soft_cap = static_cast<float>(final_soft_cap);
  TRY_STATUS(read_layers(keys, config));
  TRY_STATUS(architecture->describe(metadata, config));
  return config;
}

}  // namespace winnow

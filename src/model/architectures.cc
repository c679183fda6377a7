#include "model/architectures.h"

#include <array>
#include <cmath>

namespace winnow {
namespace {

// Llama 2/3, Mistral, SmolLM2. Converters store the rows of Q and K as neighbouring pairs.
Status describe_llama(const Metadata&, ModelConfig& config) {
  for (LayerConfig& layer : config.layers) layer.rope.interleaved_rows = true;
  return Ok{};
}

// Qwen2, Qwen2.5.
Status describe_qwen2(const Metadata&, ModelConfig& config) {
  for (LayerConfig& layer : config.layers) layer.qkv_bias = true;
  return Ok{};
}

// Qwen3.
Status describe_qwen3(const Metadata&, ModelConfig& config) {
  for (LayerConfig& layer : config.layers) layer.qk_norm = true;
  return Ok{};
}

// Which layers of a Gemma 3 see everything: given as a flag per layer (true = window), as a period,
// or not at all (period 6).
Result<std::vector<bool>> gemma3_window_layers(const Metadata& metadata, size_t num_layers) {
  constexpr std::string_view kKey = "gemma3.attention.sliding_window_pattern";
  std::vector<bool> windowed(num_layers);
  if (const MetadataValue* value = metadata.find(kKey)) {
    if (const auto* flags = std::get_if<std::vector<bool>>(value)) {
      if (flags->size() != num_layers) {
        return fail(ErrorCode::kCorruptFile, "%s: expected %zu flags, one per layer, found %zu",
                    kKey.data(), num_layers, flags->size());
      }
      return *flags;
    }
  }
  TRY(const int64_t period, metadata.integer_or(kKey, 6, 1, 1 << 20));
  for (size_t i = 0; i < num_layers; ++i)
    windowed[i] = static_cast<int64_t>(i) % period < period - 1;
  return windowed;
}

// Gemma 3: five window layers to one that sees everything, each kind with its own RoPE base; the
// linear RoPE scale of the larger models applies to the latter only. Norm weights already hold the
// +1.
Status describe_gemma3(const Metadata& metadata, ModelConfig& config) {
  constexpr size_t kLayersOf27B = 62;  // whose attention scale follows width / heads, not head_dim
  TRY(const int64_t window, metadata.integer("gemma3.attention.sliding_window", 1, INT32_MAX));
  TRY(const double local_base,
      metadata.number_or("gemma3.rope.freq_base_swa", 10000.0, kMinRopeBase, kMaxRopeBase));
  TRY(const std::vector<bool> windowed, gemma3_window_layers(metadata, config.layers.size()));
  TRY(const double global_base,
      metadata.number_or("gemma3.rope.freq_base", 1e6, kMinRopeBase, kMaxRopeBase));
  const bool scale_is_given = metadata.has("gemma3.attention.scale");
  // The exact root; training rounded it to bf16 (25.25 for 25.298 at width 640).
  config.embedding_scale = std::sqrt(static_cast<float>(config.width));
  for (size_t i = 0; i < config.layers.size(); ++i) {
    LayerConfig& layer = config.layers[i];
    layer.qk_norm = true;
    layer.norms = NormPlacement::kSandwich;
    layer.activation = Activation::kGeluTanh;
    if (config.layers.size() == kLayersOf27B && !scale_is_given) {
      const int32_t width_per_head = config.width / layer.heads;
      layer.attention_scale = 1.0F / std::sqrt(static_cast<float>(width_per_head));
    }
    layer.rope.base = windowed[i] ? local_base : global_base;
    if (!windowed[i]) continue;
    layer.attention = AttentionKind::kWindow;
    layer.window = static_cast<int32_t>(window);
    layer.rope.linear_scale = 1;
  }
  return Ok{};
}

constexpr std::array kArchitectures = {
    Architecture{"llama", describe_llama},
    Architecture{"qwen2", describe_qwen2},
    Architecture{"qwen3", describe_qwen3},
    Architecture{"gemma3", describe_gemma3},
};

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

}  // namespace winnow

// ModelConfig: what a model computes, layer by layer. Architectures fill this in; the forward pass
// reads nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernels/elementwise.h"
#include "weights/metadata.h"

namespace winnow {

enum class AttentionKind { kFull, kWindow };
enum class NormPlacement {
  kPre,       // norm before attention and before the FFN
  kSandwich,  // and after each of them, before the residual (Gemma)
};

// Angle of position p and pair i: p * base^(-2i / dims) / (linear_scale * factor[i]); pairs are (i,
// i + dims / 2). The factors, where a model has them, are its tensor `rope_freqs.weight` ([dims /
// 2], shared by all layers).
struct RopeConfig {
  int32_t dims = 0;  // rotated dims of each head; 0 = no rotation
  double base = 10000;
  double linear_scale = 1;
  bool interleaved_rows =
      false;  // Q and K rows are stored as neighbouring pairs and un-permuted at load
  friend bool operator==(const RopeConfig&, const RopeConfig&) = default;
};

// The bases that files may give; the largest known is 1e9 or so.
inline constexpr double kMinRopeBase = 1;
inline constexpr double kMaxRopeBase = 1e12;

struct LayerConfig {
  AttentionKind attention = AttentionKind::kFull;
  int32_t window = 0;  // tokens seen, the query included; 0 unless kWindow
  int32_t heads = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  float attention_scale = 0;
  float attention_soft_cap = 0;  // 0 = none
  RopeConfig rope;
  bool qkv_bias = false;  // Q, K and V have biases, added before RoPE
  bool qk_norm = false;   // RMS norm of each head of Q and K before RoPE
  NormPlacement norms = NormPlacement::kPre;
  Activation activation = Activation::kSilu;
  int32_t ffn_width = 0;

  // What attention is told: the window, or 0 for all.
  int32_t attention_window() const { return attention == AttentionKind::kWindow ? window : 0; }
};

struct ModelConfig {
  std::string architecture;
  int32_t vocab_size = 0;      // tokens that can be read and chosen; set when the weights are bound
  int32_t width = 0;           // hidden size
  int64_t context_tokens = 0;  // trained context
  float norm_epsilon = 0;
  float embedding_scale = 1;
  float final_soft_cap = 0;  // 0 = none
  std::vector<LayerConfig> layers;
};

// kUnsupported naming the architecture and the supported ones, or a kind of RoPE scaling;
// kCorruptFile naming a key that is missing or out of range.
Result<ModelConfig> read_model_config(const Metadata& metadata);

}  // namespace winnow

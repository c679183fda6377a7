// ModelWeights: the tensors of a model by role, as the forward pass reads them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/config.h"
#include "tensor/weight_view.h"
#include "weights/gguf.h"

namespace winnow {

// Small vectors (norms, biases) are kept as floats; an absent one is empty. Matrices point into the
// file, or into `unpermuted` where their rows were put back in half-split order.
struct LayerWeights {
  std::vector<float> attention_norm, ffn_norm;
  std::vector<float> post_attention_norm, post_ffn_norm;  // NormPlacement::kSandwich
  std::vector<float> q_norm, k_norm;                      // qk_norm
  WeightView q, k, v, attention_output;
  std::vector<float> q_bias, k_bias, v_bias, attention_output_bias;
  WeightView gate, up, down;
  std::vector<std::byte> unpermuted_q, unpermuted_k;
};

class ModelWeights {
 public:
  // Finds every tensor that `config` asks for and checks its shape; sets config.vocab_size. The
  // views stay valid while `file` lives. kCorruptFile naming the tensor, the expected and the found
  // shape.
  static Result<ModelWeights> bind(const GgufFile& file, ModelConfig& config);

  WeightView embedding;  // [vocab, width], without rows of padding
  WeightView output;     // [vocab, width]; the embedding itself where the two are tied
  std::vector<float> output_norm;
  std::vector<float> rope_factors;  // rope_freqs.weight, or empty
  std::vector<LayerWeights> layers;
  std::vector<std::string> unused_tensors;  // in the file, but unknown to its architecture
};

}  // namespace winnow

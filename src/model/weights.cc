#include "model/weights.h"

#include <cstring>
#include <set>

#include "tensor/qformats.h"

namespace winnow {
namespace {

std::string shape_text(const std::vector<int64_t>& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(dims[i]);
  return text + "]";
}

// Looks tensors up by name, checks their shape and remembers which were asked for.
class TensorBinder {
 public:
  explicit TensorBinder(const GgufFile& file) : file_(file) {}

  bool has(const std::string& name) const { return file_.find(name) != nullptr; }

  // A matrix of `cols` inputs and `rows` outputs (any number of outputs if rows is 0).
  Result<WeightView> matrix(const std::string& name, int64_t cols, int64_t rows) {
    TRY(const TensorInfo* info, get(name));
    const bool fits =
        info->dims.size() == 2 && info->dims[0] == cols && (rows == 0 || info->dims[1] == rows);
    if (!fits)
      return wrong_shape(
          *info, rows == 0 ? "[" + std::to_string(cols) + ", *]" : shape_text({cols, rows}));
    return info->view();
  }
  Result<std::vector<float>> vector(const std::string& name, int64_t size) {
    TRY(const TensorInfo* info, get(name));
    if (info->dims != std::vector<int64_t>{size}) return wrong_shape(*info, shape_text({size}));
    std::vector<float> values(static_cast<size_t>(size));
    dequantize(info->dtype, info->data, size, values.data());
    return values;
  }
  // Empty if the tensor is missing.
  Result<std::vector<float>> optional_vector(const std::string& name, int64_t size) {
    if (!has(name)) return std::vector<float>{};
    return vector(name, size);
  }
  std::vector<std::string> unused() const {
    std::vector<std::string> names;
    for (const TensorInfo& tensor : file_.tensors()) {
      if (!used_.contains(tensor.name)) names.push_back(tensor.name);
    }
    return names;
  }

 private:
  Result<const TensorInfo*> get(const std::string& name) {
    const TensorInfo* info = file_.find(name);
    if (info == nullptr)
      return fail(ErrorCode::kCorruptFile, "tensor '%s' is missing", name.c_str());
    used_.insert(info->name);
    return info;
  }
  static Error wrong_shape(const TensorInfo& info, const std::string& expected) {
    return fail(ErrorCode::kCorruptFile, "tensor '%s': expected shape %s, found %s",
                info.name.c_str(), expected.c_str(), shape_text(info.dims).c_str());
  }

  const GgufFile& file_;
  std::set<std::string_view> used_;
};

WeightView rows_of(const WeightView& whole, int64_t begin, int64_t count) {
  return {whole.dtype, count, whole.cols, whole.row(begin)};
}

// Index of the stored row that half-split row `row` of a head comes from: stored rows 2i and 2i + 1
// are the pair (i, i + dims / 2).
int64_t interleaved_row(int64_t row, int64_t dims) {
  if (row >= dims) return row;
  const int64_t half = dims / 2;
  return row < half ? 2 * row : 2 * (row - half) + 1;
}

// Copies the rows of each head into half-split order, so that one RoPE kernel serves every
// architecture.
void unpermute_rows(WeightView& weight, int64_t heads, const RopeConfig& rope,
                    std::vector<std::byte>& storage) {
  const auto row_bytes = static_cast<size_t>(weight.row_bytes());
  const int64_t head_dim = weight.rows / heads;
  storage.resize(static_cast<size_t>(weight.rows) * row_bytes);
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t row = 0; row < head_dim; ++row) {
      const int64_t source = head * head_dim + interleaved_row(row, rope.dims);
      std::memcpy(storage.data() + static_cast<size_t>(head * head_dim + row) * row_bytes,
                  weight.row(source), row_bytes);
    }
  }
  weight.data = storage.data();
}

void unpermute_values(std::vector<float>& values, int64_t heads, const RopeConfig& rope) {
  if (values.empty()) return;
  const std::vector<float> stored = values;
  const int64_t head_dim = static_cast<int64_t>(values.size()) / heads;
  for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i) {
    values[static_cast<size_t>(i)] = stored[static_cast<size_t>(
        i / head_dim * head_dim + interleaved_row(i % head_dim, rope.dims))];
  }
}

// Q, K and V as three tensors, or as one tensor of all their rows.
Status bind_qkv(TensorBinder& tensors, const std::string& prefix, const LayerConfig& config,
                int64_t width, LayerWeights& layer) {
  const int64_t q_rows = int64_t{config.heads} * config.head_dim;
  const int64_t kv_rows = int64_t{config.kv_heads} * config.head_dim;
  if (tensors.has(prefix + "attn_qkv.weight")) {
    TRY(const WeightView fused,
        tensors.matrix(prefix + "attn_qkv.weight", width, q_rows + 2 * kv_rows));
    layer.q = rows_of(fused, 0, q_rows);
    layer.k = rows_of(fused, q_rows, kv_rows);
    layer.v = rows_of(fused, q_rows + kv_rows, kv_rows);
  } else {
    TRY(layer.q, tensors.matrix(prefix + "attn_q.weight", width, q_rows));
    TRY(layer.k, tensors.matrix(prefix + "attn_k.weight", width, kv_rows));
    TRY(layer.v, tensors.matrix(prefix + "attn_v.weight", width, kv_rows));
  }
  if (tensors.has(prefix + "attn_qkv.bias")) {
    TRY(const std::vector<float> fused,
        tensors.vector(prefix + "attn_qkv.bias", q_rows + 2 * kv_rows));
    layer.q_bias.assign(fused.begin(), fused.begin() + q_rows);
    layer.k_bias.assign(fused.begin() + q_rows, fused.begin() + q_rows + kv_rows);
    layer.v_bias.assign(fused.begin() + q_rows + kv_rows, fused.end());
  } else if (config.qkv_bias) {
    TRY(layer.q_bias, tensors.vector(prefix + "attn_q.bias", q_rows));
    TRY(layer.k_bias, tensors.vector(prefix + "attn_k.bias", kv_rows));
    TRY(layer.v_bias, tensors.vector(prefix + "attn_v.bias", kv_rows));
  } else {
    TRY(layer.q_bias, tensors.optional_vector(prefix + "attn_q.bias", q_rows));
    TRY(layer.k_bias, tensors.optional_vector(prefix + "attn_k.bias", kv_rows));
    TRY(layer.v_bias, tensors.optional_vector(prefix + "attn_v.bias", kv_rows));
  }
  if (config.rope.interleaved_rows) {
    unpermute_rows(layer.q, config.heads, config.rope, layer.unpermuted_q);
    unpermute_rows(layer.k, config.kv_heads, config.rope, layer.unpermuted_k);
    unpermute_values(layer.q_bias, config.heads, config.rope);
    unpermute_values(layer.k_bias, config.kv_heads, config.rope);
  }
  return Ok{};
}

Result<LayerWeights> bind_layer(TensorBinder& tensors, size_t layer_idx, const LayerConfig& config,
                                int64_t width) {
  const std::string prefix = "blk." + std::to_string(layer_idx) + ".";
  LayerWeights layer;
  TRY(layer.attention_norm, tensors.vector(prefix + "attn_norm.weight", width));
  TRY_STATUS(bind_qkv(tensors, prefix, config, width, layer));
  if (config.qk_norm) {
    TRY(layer.q_norm, tensors.vector(prefix + "attn_q_norm.weight", config.head_dim));
    TRY(layer.k_norm, tensors.vector(prefix + "attn_k_norm.weight", config.head_dim));
  }
  const int64_t q_rows = int64_t{config.heads} * config.head_dim;
  TRY(layer.attention_output, tensors.matrix(prefix + "attn_output.weight", q_rows, width));
  TRY(layer.attention_output_bias, tensors.optional_vector(prefix + "attn_output.bias", width));
  TRY(layer.ffn_norm, tensors.vector(prefix + "ffn_norm.weight", width));
  if (config.norms == NormPlacement::kSandwich) {
    TRY(layer.post_attention_norm, tensors.vector(prefix + "post_attention_norm.weight", width));
    TRY(layer.post_ffn_norm, tensors.vector(prefix + "post_ffw_norm.weight", width));
  }
  TRY(layer.gate, tensors.matrix(prefix + "ffn_gate.weight", width, config.ffn_width));
  TRY(layer.up, tensors.matrix(prefix + "ffn_up.weight", width, config.ffn_width));
  TRY(layer.down, tensors.matrix(prefix + "ffn_down.weight", config.ffn_width, width));
  return layer;
}

// Rows beyond the vocabulary are padding: no token names them, so none may be chosen. A token
// without a row is an error.
Status trim_to_vocabulary(const GgufFile& file, ModelWeights& weights) {
  if (!file.metadata().has("tokenizer.ggml.tokens")) return Ok{};
  TRY(const std::vector<std::string>* tokens, file.metadata().strings("tokenizer.ggml.tokens"));
  const auto num_tokens = static_cast<int64_t>(tokens->size());
  if (num_tokens == 0 || num_tokens > weights.embedding.rows) {
    return fail(
        ErrorCode::kCorruptFile,
        "tokenizer.ggml.tokens: expected 1 to %lld, the rows of token_embd.weight, found %zu",
        static_cast<long long>(weights.embedding.rows), tokens->size());
  }
  weights.embedding.rows = weights.output.rows = num_tokens;
  return Ok{};
}

// One table of factors serves all layers, so all must rotate the same dims.
Status bind_rope_factors(TensorBinder& tensors, const ModelConfig& config, ModelWeights& weights) {
  if (!tensors.has("rope_freqs.weight")) return Ok{};
  for (const LayerConfig& layer : config.layers) {
    if (layer.rope.dims == config.layers[0].rope.dims) continue;
    return fail(
        ErrorCode::kUnsupported,
        "tensor 'rope_freqs.weight': expected layers that rotate alike, found %d and %d dims",
        config.layers[0].rope.dims, layer.rope.dims);
  }
  TRY(weights.rope_factors, tensors.vector("rope_freqs.weight", config.layers[0].rope.dims / 2));
  for (const float factor : weights.rope_factors) {
    if (factor > 0) continue;
    return fail(ErrorCode::kCorruptFile,
                "tensor 'rope_freqs.weight': expected positive numbers, found %g",
                static_cast<double>(factor));
  }
  return Ok{};
}

}  // namespace

Result<ModelWeights> ModelWeights::bind(const GgufFile& file, ModelConfig& config) {
  TensorBinder tensors(file);
  ModelWeights weights;
  TRY(weights.embedding, tensors.matrix("token_embd.weight", config.width, 0));
  if (weights.embedding.rows > INT32_MAX) {
    return fail(ErrorCode::kCorruptFile,
                "tensor 'token_embd.weight': expected at most %d rows, found %lld", INT32_MAX,
                static_cast<long long>(weights.embedding.rows));
  }
  weights.output = weights.embedding;
  if (tensors.has("output.weight")) {
    TRY(weights.output, tensors.matrix("output.weight", config.width, weights.embedding.rows));
  }
  TRY_STATUS(trim_to_vocabulary(file, weights));
  config.vocab_size = static_cast<int32_t>(weights.embedding.rows);
  TRY(weights.output_norm, tensors.vector("output_norm.weight", config.width));
  TRY_STATUS(bind_rope_factors(tensors, config, weights));
  weights.layers.reserve(config.layers.size());
  for (size_t i = 0; i < config.layers.size(); ++i) {
    TRY(LayerWeights layer, bind_layer(tensors, i, config.layers[i], config.width));
    weights.layers.push_back(std::move(layer));
  }
  weights.unused_tensors = tensors.unused();
  return weights;
}

}  // namespace winnow

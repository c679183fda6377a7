#include "model/decoder.h"

#include <algorithm>

#include "attention/sparse_decode.h"
#include "base/aligned_buffer.h"
#include "base/check.h"
#include "kernels/elementwise.h"
#include "kernels/linear.h"
#include "model/rope_table.h"
#include "model/weights.h"
#include "tensor/qformats.h"

namespace winnow {
namespace {

// Rows per task of the row-wise operations: enough work to hide a hand-out, small enough to
// balance.
constexpr int64_t kRowsPerTask = 16;
// Rows of logits computed together; bounds the buffer at 64 x 262,144 floats (64 MiB) for the
// largest vocabularies.
constexpr int64_t kLogitRowsAtOnce = 64;

// The rows of a step: those of prompt tokens first, then those of generated tokens.
struct StepRows {
  int64_t prompt = 0;
  int64_t all = 0;
};

StepRows count_rows(std::span<const StepSequence> step) {
  StepRows rows;
  for (const StepSequence& sequence : step) {
    const auto num_tokens = static_cast<int64_t>(sequence.tokens.size());
    CHECK(sequence.num_logits >= 0 && sequence.num_logits <= num_tokens);
    CHECK(sequence.phase == Phase::kGenerate ? num_tokens == 1 : rows.prompt == rows.all);
    if (sequence.phase == Phase::kPrompt) rows.prompt += num_tokens;
    rows.all += num_tokens;
  }
  return rows;
}

// Numbers in the sketch of a key: 3 of 16 dims. On 8,192 tokens of code, Qwen2.5-Coder-0.5B, at an
// effective density of 0.263, the divergence is 0.0046 with 12 of 64 dims, 0.0052 with 16, and with
// 8 at 0.249 it is 0.0102.
int sketch_rank(int head_dim) { return std::max(4, head_dim * 3 / 16 / 4 * 4); }

AttentionShape attention_shape(const LayerConfig& layer) {
  return {.heads = layer.heads,
          .scale = layer.attention_scale,
          .soft_cap = layer.attention_soft_cap,
          .window = layer.attention_window()};
}

}  // namespace

std::vector<KvLayout> kv_layouts(const ModelConfig& config, KvDType dtype) {
  std::vector<KvLayout> layouts;
  for (const LayerConfig& layer : config.layers) {
    layouts.push_back({.kv_heads = layer.kv_heads,
                       .head_dim = layer.head_dim,
                       .dtype = dtype,
                       .sketch_rank = sketch_rank(layer.head_dim)});
  }
  return layouts;
}

int64_t step_bytes(const ModelConfig& config, const KernelTable& kernels, const StepSize& size) {
  int64_t q_width = 0, kv_width = 0, ffn_width = 0, attention_bytes = 0;
  std::vector<RopeConfig> ropes;  // of which each has a table
  const std::vector<KvLayout> layouts = kv_layouts(config, KvDType::kBf16);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const LayerConfig& layer = config.layers[i];
    q_width = std::max(q_width, int64_t{layer.heads} * layer.head_dim);
    kv_width = std::max(kv_width, int64_t{layer.kv_heads} * layer.head_dim);
    ffn_width = std::max(ffn_width, int64_t{layer.ffn_width});
    attention_bytes =
        std::max(attention_bytes, prompt_scratch_bytes(kernels, layouts[i], layer.heads,
                                                       size.context_tokens, size.num_threads));
    if (std::find(ropes.begin(), ropes.end(), layer.rope) == ropes.end())
      ropes.push_back(layer.rope);
  }
  int64_t row_floats = 3 * int64_t{config.width} + 2 * q_width + 2 * kv_width + ffn_width;
  for (const RopeConfig& rope : ropes) row_floats += rope.dims;
  const int64_t num_logit_rows = std::min(kLogitRowsAtOnce, size.num_rows);
  const int64_t floats = size.num_rows * row_floats + num_logit_rows * config.vocab_size;
  const int64_t widest = std::max({int64_t{config.width}, q_width, ffn_width});
  return floats * static_cast<int64_t>(sizeof(float)) + attention_bytes +
         LinearScratch::bytes_for(kernels, size.num_rows, num_logit_rows, widest, size.num_threads);
}

struct Decoder::Impl {
  Impl(const Model& model_in, const KernelTable& kernels_in)
      : model(model_in),
        config(model_in.config()),
        weights(model_in.weights()),
        kernels(kernels_in) {
    for (const LayerConfig& layer : config.layers)
      rope_of_layer.push_back(rope_table_for(layer.rope));
  }

  // Layers with the same rotation share a table.
  RopeTable* rope_table_for(const RopeConfig& rope) {
    for (auto& [known, table] : rope_tables) {
      if (known == rope) return table.get();
    }
    rope_tables.emplace_back(rope, std::make_unique<RopeTable>(rope, weights.rope_factors));
    return rope_tables.back().second.get();
  }

  void begin_step(std::span<const StepSequence> step);
  void attention_block(size_t layer_idx, std::span<const StepSequence> step, KvStore& kv);
  void ffn_block(size_t layer_idx);
  void attend(size_t layer_idx, std::span<const StepSequence> step, const KvLayerView& kv);
  void attend_generated(size_t layer_idx, const StepSequence& sequence, const AttentionRows& rows,
                        const KvLayerView& kv);
  SparseLayer sparse_layer(int layer, const SparseSequence& sparse, float tau,
                           std::span<const PageId> pages, int32_t num_tokens, const KvLayerView& kv,
                           AttentionStats& stats);
  void attend_prompt(size_t layer_idx, const StepSequence& sequence, const AttentionRows& all,
                     const KvLayerView& kv);
  void normalize_heads(const LayerConfig& layer, const LayerWeights& tensors);
  void rotate(const LayerConfig& layer, const RopeTable& table);
  void add_to_residual(const std::vector<float>& post_norm, float* branch);
  bool produce_logits(std::span<const StepSequence> step,
                      FunctionRef<void(const LogitRows&)> on_logits,
                      const std::atomic<bool>* cancel);

  // Runs `body(first_row, num_rows)` over all rows of the step.
  template <class Body>
  void for_rows(Body body) {
    pool->run((rows.all + kRowsPerTask - 1) / kRowsPerTask, [&](int64_t task_idx, int) {
      const int64_t first = task_idx * kRowsPerTask;
      body(first, std::min(kRowsPerTask, rows.all - first));
    });
  }
  // Runs `body(phase, first_row, num_rows)`: all rows of the step, each with the arithmetic of its
  // phase.
  template <class Body>
  void for_phases(Body body) {
    if (rows.prompt > 0) body(Phase::kPrompt, int64_t{0}, rows.prompt);
    if (rows.all > rows.prompt) body(Phase::kGenerate, rows.prompt, rows.all - rows.prompt);
  }
  void rms_norm(const float* x, const std::vector<float>& weight, float* y);
  void project(const float* x, int64_t width, std::vector<LinearOutput> outputs);

  const Model& model;
  const ModelConfig& config;
  const ModelWeights& weights;
  const KernelTable& kernels;
  std::vector<std::pair<RopeConfig, std::unique_ptr<RopeTable>>> rope_tables;
  std::vector<RopeTable*> rope_of_layer;

  // Of the running step.
  ThreadPool* pool = nullptr;
  StepRows rows;
  std::vector<int32_t> positions;
  std::vector<AttentionRows> generate_rows;         // of the layer that runs
  std::vector<SparseDecodeRow> sparse_decode_rows;  // likewise
  AlignedBuffer<float> residual, normed, q, k, v, attended, branch, activated, logits;
  LinearScratch linear_scratch;
  AttentionScratch attention_scratch;
};

Decoder::Decoder(const Model& model, const KernelTable& kernels)
    : impl_(std::make_unique<Impl>(model, kernels)) {}
Decoder::~Decoder() = default;

int64_t Decoder::scratch_bytes() const {
  const Impl& own = *impl_;
  int64_t bytes = own.linear_scratch.capacity_bytes();
  for (const auto* buffer :
       {&own.residual, &own.normed, &own.q, &own.k, &own.v, &own.attended, &own.branch,
        &own.activated, &own.logits, &own.attention_scratch.pieces}) {
    bytes += static_cast<int64_t>(buffer->capacity_bytes());
  }
  for (const auto& [rope, table] : own.rope_tables) bytes += table->capacity_bytes();
  return bytes + static_cast<int64_t>(own.attention_scratch.tiles.capacity_bytes());
}

bool Decoder::run_step(std::span<const StepSequence> step, KvStore& kv, ThreadPool& pool,
                       FunctionRef<void(const LogitRows&)> on_logits,
                       const std::atomic<bool>* cancel) {
  impl_->pool = &pool;
  impl_->begin_step(step);
  for (size_t layer_idx = 0; layer_idx < impl_->config.layers.size(); ++layer_idx) {
    impl_->attention_block(layer_idx, step, kv);
    impl_->ffn_block(layer_idx);
  }
  return impl_->produce_logits(step, on_logits, cancel);
}

// Looks the tokens up in the embedding and computes the rotation angles of their positions.
void Decoder::Impl::begin_step(std::span<const StepSequence> step) {
  rows = count_rows(step);
  positions.clear();
  std::vector<TokenId> tokens;
  for (const StepSequence& sequence : step) {
    for (size_t i = 0; i < sequence.tokens.size(); ++i) {
      positions.push_back(sequence.begin + static_cast<int32_t>(i));
      tokens.push_back(sequence.tokens[i]);
    }
  }
  float* x = residual.ensure(static_cast<size_t>(rows.all * config.width));
  for_rows([&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      const TokenId token = tokens[static_cast<size_t>(row)];
      CHECK(token >= 0 && token < config.vocab_size);
      float* embedded = x + row * config.width;
      dequantize(weights.embedding.dtype, weights.embedding.row(token), config.width, embedded);
      for (int64_t i = 0; i < config.width; ++i) embedded[i] *= config.embedding_scale;
    }
  });
  for (auto& [rope, table] : rope_tables) table->fill(positions, *pool);
}

// x += W_o attention(rope(norm(W_q x)), rope(norm(W_k x)), W_v x), on the normed x.
void Decoder::Impl::attention_block(size_t layer_idx, std::span<const StepSequence> step,
                                    KvStore& kv) {
  const LayerConfig& layer = config.layers[layer_idx];
  const LayerWeights& tensors = weights.layers[layer_idx];
  const int64_t q_width = int64_t{layer.heads} * layer.head_dim;
  const int64_t kv_width = int64_t{layer.kv_heads} * layer.head_dim;
  const auto num_rows = static_cast<size_t>(rows.all);
  q.ensure(num_rows * static_cast<size_t>(q_width));
  k.ensure(num_rows * static_cast<size_t>(kv_width));
  v.ensure(num_rows * static_cast<size_t>(kv_width));
  attended.ensure(num_rows * static_cast<size_t>(q_width));
  branch.ensure(num_rows * static_cast<size_t>(config.width));
  normed.ensure(num_rows * static_cast<size_t>(config.width));

  rms_norm(residual.data(), tensors.attention_norm, normed.data());
  const auto bias = [](const std::vector<float>& values) {
    return values.empty() ? nullptr : values.data();
  };
  project(normed.data(), config.width,
          {{tensors.q, bias(tensors.q_bias), q.data(), q_width},
           {tensors.k, bias(tensors.k_bias), k.data(), kv_width},
           {tensors.v, bias(tensors.v_bias), v.data(), kv_width}});
  if (layer.qk_norm) normalize_heads(layer, tensors);
  rotate(layer, *rope_of_layer[layer_idx]);
  attend(layer_idx, step, kv.layer(static_cast<int>(layer_idx)));
  project(attended.data(), q_width,
          {{tensors.attention_output, bias(tensors.attention_output_bias), branch.data(),
            config.width}});
  add_to_residual(tensors.post_attention_norm, branch.data());
}

// x += W_down (activation(W_gate x) * W_up x), on the normed x.
void Decoder::Impl::ffn_block(size_t layer_idx) {
  const LayerConfig& layer = config.layers[layer_idx];
  const LayerWeights& tensors = weights.layers[layer_idx];
  const int64_t ffn_width = layer.ffn_width;
  activated.ensure(static_cast<size_t>(rows.all * ffn_width));

  rms_norm(residual.data(), tensors.ffn_norm, normed.data());
  for_phases([&](Phase phase, int64_t first, int64_t count) {
    gated_linear(kernels, phase,
                 {normed.data() + first * config.width, count, config.width, config.width},
                 {tensors.gate, tensors.up, layer.activation, activated.data() + first * ffn_width,
                  ffn_width},
                 *pool, linear_scratch);
  });
  project(activated.data(), ffn_width, {{tensors.down, nullptr, branch.data(), config.width}});
  add_to_residual(tensors.post_ffn_norm, branch.data());
}

void Decoder::Impl::attend(size_t layer_idx, std::span<const StepSequence> step,
                           const KvLayerView& kv) {
  const LayerConfig& layer = config.layers[layer_idx];
  const int64_t q_width = int64_t{layer.heads} * layer.head_dim;
  const int64_t kv_width = int64_t{layer.kv_heads} * layer.head_dim;
  generate_rows.clear();
  sparse_decode_rows.clear();
  int64_t row = 0;
  for (const StepSequence& sequence : step) {
    const auto num_tokens = static_cast<int32_t>(sequence.tokens.size());
    write_kv(kernels, kv, sequence.pages, sequence.begin, num_tokens, k.data() + row * kv_width,
             v.data() + row * kv_width);
    const AttentionRows attention_rows{.begin = sequence.begin,
                                       .num_tokens = num_tokens,
                                       .q = q.data() + row * q_width,
                                       .out = attended.data() + row * q_width,
                                       .pages = sequence.pages};
    if (sequence.phase == Phase::kGenerate) {
      attend_generated(layer_idx, sequence, attention_rows, kv);
    } else {
      attend_prompt(layer_idx, sequence, attention_rows, kv);
    }
    row += num_tokens;
  }
  if (!generate_rows.empty()) {
    generate_attention(kernels, attention_shape(layer), kv, generate_rows, *pool,
                       attention_scratch);
  }
  if (!sparse_decode_rows.empty()) {
    sparse_decode_attention(kernels, attention_shape(layer), kv, sparse_decode_rows, *pool,
                            attention_scratch);
  }
}

// Puts a generated token to those that attend together.
void Decoder::Impl::attend_generated(size_t layer_idx, const StepSequence& sequence,
                                     const AttentionRows& own, const KvLayerView& kv) {
  const AttentionShape shape = attention_shape(config.layers[layer_idx]);
  const auto layer = static_cast<int>(layer_idx);
  const SparseSequence* sparse = sequence.sparse;
  AttentionStats* stats = shape.window > 0 ? nullptr : sequence.stats;
  if (sparse != nullptr && sparse->rule->applies_to_layer(layer, shape.window)) {
    // Also where a layer cannot decode sparsely: pages have the summaries of all layers or of none.
    AttentionStats ignored;
    const SparseLayer how = sparse_layer(layer, *sparse, sparse->rule->decode_tau, own.pages,
                                         own.begin, kv, stats == nullptr ? ignored : *stats);
    if (can_decode_sparsely(shape, kv.layout))
      return sparse_decode_rows.push_back({own, how, stats});
  }
  generate_rows.push_back(own);
  if (stats == nullptr) return;
  const int64_t pairs = pairs_seen(own.begin, own.begin + 1) * shape.heads;
  stats->causal_pairs += pairs;
  stats->kept_pairs += pairs;
}

// The sequence's way of attending in one layer; the full pages of its first num_tokens tokens have
// their summaries then.
SparseLayer Decoder::Impl::sparse_layer(int layer, const SparseSequence& sparse, float tau,
                                        std::span<const PageId> pages, int32_t num_tokens,
                                        const KvLayerView& kv, AttentionStats& stats) {
  const SparseProfile* profile = sparse.profile;
  const SparseProfile::Layer* moments =
      profile == nullptr ? nullptr : &profile->layers[static_cast<size_t>(layer)];
  return {.layer_idx = layer,
          .rule = sparse.rule,
          .basis = sparse.summaries->update(layer, kv, pages, num_tokens, *sparse.rule, moments,
                                            *pool, stats),
          .tau = tau * (profile == nullptr ? 1 : profile->tau_factor)};
}

// Dense rows, sparse rows, dense rows.
void Decoder::Impl::attend_prompt(size_t layer_idx, const StepSequence& sequence,
                                  const AttentionRows& all, const KvLayerView& kv) {
  const AttentionShape shape = attention_shape(config.layers[layer_idx]);
  const int32_t end = all.begin + all.num_tokens;
  if (sequence.profiled != nullptr && shape.window == 0) {
    sequence.profiled->add_queries(static_cast<int>(layer_idx), kv.layout, shape.heads, all);
  }
  AttentionStats ignored;
  AttentionStats& stats = sequence.stats == nullptr || shape.window > 0 ? ignored : *sequence.stats;
  const auto part = [&](int32_t part_begin, int32_t part_end) {
    const int64_t offset = int64_t{part_begin - all.begin} * shape.heads * kv.layout.head_dim;
    return AttentionRows{part_begin, part_end - part_begin, all.q + offset, all.out + offset,
                         all.pages};
  };
  const auto attend_densely = [&](int32_t part_begin, int32_t part_end) {
    if (part_begin >= part_end) return;
    prompt_attention(kernels, shape, kv, part(part_begin, part_end), *pool, attention_scratch,
                     stats);
  };
  const SparseSequence* sparse = sequence.sparse;
  const auto layer = static_cast<int>(layer_idx);
  int32_t sparse_begin = end;
  int32_t sparse_end = end;
  if (sparse != nullptr && sparse->rule->applies_to_layer(layer, shape.window)) {
    sparse_begin = std::clamp(sparse->rule->dense_tokens, all.begin, end);
    sparse_end = std::clamp(sparse->end, sparse_begin, end);
  }
  attend_densely(all.begin, sparse_begin);
  if (sparse_begin < sparse_end) {
    SparseLayer how =
        sparse_layer(layer, *sparse, sparse->rule->tau, all.pages, sparse_end, kv, stats);
    how.observer = sparse->observer;
    sparse_prompt_attention(kernels, shape, kv, part(sparse_begin, sparse_end), how, *pool,
                            attention_scratch, stats);
  }
  attend_densely(sparse_end, end);
}

void Decoder::Impl::normalize_heads(const LayerConfig& layer, const LayerWeights& tensors) {
  const auto normalize = [&](float* x, int64_t heads, const std::vector<float>& weight,
                             int64_t first, int64_t count) {
    float* head = x + first * heads * layer.head_dim;
    kernels.elementwise->rms_norm(head, weight.data(), config.norm_epsilon, count * heads,
                                  layer.head_dim, head);
  };
  for_rows([&](int64_t first, int64_t count) {
    normalize(q.data(), layer.heads, tensors.q_norm, first, count);
    normalize(k.data(), layer.kv_heads, tensors.k_norm, first, count);
  });
}

void Decoder::Impl::rotate(const LayerConfig& layer, const RopeTable& table) {
  if (layer.rope.dims == 0) return;
  const auto rotate_heads = [&](float* x, int64_t heads, int64_t first, int64_t count) {
    kernels.elementwise->rope(x + first * heads * layer.head_dim, table.row(first), count, heads,
                              layer.head_dim, layer.rope.dims);
  };
  for_rows([&](int64_t first, int64_t count) {
    rotate_heads(q.data(), layer.heads, first, count);
    rotate_heads(k.data(), layer.kv_heads, first, count);
  });
}

void Decoder::Impl::add_to_residual(const std::vector<float>& post_norm, float* values) {
  if (!post_norm.empty()) rms_norm(values, post_norm, values);
  for_rows([&](int64_t first, int64_t count) {
    kernels.elementwise->add(values + first * config.width, count * config.width,
                             residual.data() + first * config.width);
  });
}

void Decoder::Impl::rms_norm(const float* x, const std::vector<float>& weight, float* y) {
  const auto width = static_cast<int64_t>(weight.size());
  for_rows([&](int64_t first, int64_t count) {
    kernels.elementwise->rms_norm(x + first * width, weight.data(), config.norm_epsilon, count,
                                  width, y + first * width);
  });
}

// Every output of all rows.
void Decoder::Impl::project(const float* x, int64_t width, std::vector<LinearOutput> outputs) {
  for_phases([&](Phase phase, int64_t first, int64_t count) {
    linear(kernels, phase, {x + first * width, count, width, width}, outputs, *pool,
           linear_scratch);
    for (LinearOutput& output : outputs) output.y += count * output.y_stride;
  });
}

// The output matrix is read once as stored for every row, prompt or generated: a prompt wants one
// row of it only, and unpacking 150,000 columns for that would cost more than the product.
bool Decoder::Impl::produce_logits(std::span<const StepSequence> step,
                                   FunctionRef<void(const LogitRows&)> on_logits,
                                   const std::atomic<bool>* cancel) {
  std::vector<int64_t> wanted;
  int64_t row = 0;
  for (const StepSequence& sequence : step) {
    row += static_cast<int64_t>(sequence.tokens.size());
    for (int64_t i = sequence.num_logits; i > 0; --i) wanted.push_back(row - i);
  }
  const ElementwiseKernels& elementwise = *kernels.elementwise;
  for (size_t begin = 0; begin < wanted.size(); begin += kLogitRowsAtOnce) {
    if (cancel != nullptr && cancel->load(std::memory_order_relaxed)) return false;
    const auto count =
        std::min<int64_t>(kLogitRowsAtOnce, static_cast<int64_t>(wanted.size() - begin));
    float* last = normed.ensure(static_cast<size_t>(count * config.width));
    for (int64_t i = 0; i < count; ++i) {
      elementwise.rms_norm(residual.data() + wanted[begin + static_cast<size_t>(i)] * config.width,
                           weights.output_norm.data(), config.norm_epsilon, 1, config.width,
                           last + i * config.width);
    }
    float* values = logits.ensure(static_cast<size_t>(count * config.vocab_size));
    const LinearOutput output{weights.output, nullptr, values, config.vocab_size};
    linear(kernels, Phase::kGenerate, {last, count, config.width, config.width}, {&output, 1},
           *pool, linear_scratch);
    if (config.final_soft_cap > 0) {
      pool->run(count, [&](int64_t i, int) {
        elementwise.soft_cap(values + i * config.vocab_size, config.vocab_size,
                             config.final_soft_cap);
      });
    }
    on_logits({static_cast<int64_t>(begin), count, values});
  }
  return true;
}

}  // namespace winnow

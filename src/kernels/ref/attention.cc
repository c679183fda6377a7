// The specification of the attention kernels: one row after the other, one key after the other.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/attention_kernels.h"
#include "tensor/half.h"

namespace winnow {
namespace {

constexpr float kNoLogit = -std::numeric_limits<float>::infinity();

// The tile's state, as it lies in its scratch: [rows] maxima, [rows] sums, [rows, head_dim]
// accumulators.
struct State {
  explicit State(const AttentionTile& tile)
      : rows(tile.queries * tile.group),
        max(reinterpret_cast<float*>(tile.scratch)),
        sum(max + rows),
        acc(sum + rows) {}

  int64_t rows;
  float* max;
  float* sum;
  float* acc;
};

int64_t scratch_bytes(int32_t rows, int32_t head_dim) {
  return int64_t{rows} * (head_dim + 2) * static_cast<int64_t>(sizeof(float));
}

int64_t row_offset(const AttentionTile& tile, int64_t row) {
  return row / tile.group * tile.query_stride + row % tile.group * tile.head_dim;
}

KvLayout head_layout(const AttentionTile& tile) {
  return {.kv_heads = 1, .head_dim = tile.head_dim, .dtype = tile.dtype};
}

void begin(const AttentionTile& tile) {
  const State state(tile);
  std::fill_n(state.max, state.rows, kNoLogit);
  std::fill_n(state.sum, state.rows * (tile.head_dim + 1), 0.0F);
}

// In units of log2.
float logit(const AttentionTile& tile, const float* q, const uint16_t* k, int token) {
  const KvLayout layout = head_layout(tile);
  float dot = 0;
  for (int dim = 0; dim < tile.head_dim; ++dim) {
    dot += q[dim] * half_to_float(tile.dtype, k[layout.k_index(token, dim)]);
  }
  float scaled = dot * tile.scale;
  if (tile.soft_cap > 0) scaled = tile.soft_cap * std::tanh(scaled / tile.soft_cap);
  return scaled * std::numbers::log2e_v<float>;
}

// Adds tokens [begin, end) of a page to one row.
void visit_row(const AttentionTile& tile, const AttentionBlock& block, int64_t row, int begin,
               int end) {
  const State state(tile);
  const KvLayout layout = head_layout(tile);
  const auto* k = reinterpret_cast<const uint16_t*>(block.k);
  const auto* v = reinterpret_cast<const uint16_t*>(block.v);
  float logits[kPageTokens];
  float max = state.max[row];
  for (int token = begin; token < end; ++token) {
    logits[token] = logit(tile, tile.q + row_offset(tile, row), k, token);
    max = std::max(max, logits[token]);
  }
  // While every logit is minus infinity, any finite reference will do.
  const float reference = max == kNoLogit ? 0 : max;
  const float shrink = std::exp2(state.max[row] - reference);
  float* acc = state.acc + row * tile.head_dim;
  for (int dim = 0; dim < tile.head_dim; ++dim) acc[dim] *= shrink;
  state.sum[row] *= shrink;
  state.max[row] = max;
  for (int token = begin; token < end; ++token) {
    const float weight = std::exp2(logits[token] - reference);
    state.sum[row] += weight;
    for (int dim = 0; dim < tile.head_dim; ++dim) {
      acc[dim] += weight * half_to_float(tile.dtype, v[layout.v_index(token, dim)]);
    }
  }
}

void visit_block(const AttentionTile& tile, const AttentionBlock& block) {
  const int64_t rows = State(tile).rows;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t position = tile.first_position + row / tile.group;
    const int64_t first = tile.window > 0 ? position - tile.window + 1 : 0;
    const int64_t begin = std::max<int64_t>(block.begin_token, first - block.position);
    const int64_t end = std::min<int64_t>(block.end_token, position + 1 - block.position);
    if (begin < end) visit_row(tile, block, row, static_cast<int>(begin), static_cast<int>(end));
  }
}

void visit(const AttentionTile& tile, const AttentionBlock* blocks, int32_t num_blocks) {
  for (int32_t i = 0; i < num_blocks; ++i) visit_block(tile, blocks[i]);
}

void visit_steps(const AttentionTile& tile, const AttentionStep* steps, int32_t num_steps) {
  const int64_t rows = State(tile).rows;
  for (int32_t i = 0; i < num_steps; ++i) {
    const AttentionBlock block{.k = steps[i].k, .v = steps[i].v};
    for (int64_t row = 0; row < rows; ++row) {
      visit_row(tile, block, row, steps[i].token, steps[i].token + kStepTokens);
    }
  }
}

void finish(const AttentionTile& tile) {
  const State state(tile);
  for (int64_t row = 0; row < state.rows; ++row) {
    const float inverse = 1 / state.sum[row];
    float* out = tile.out + row_offset(tile, row);
    for (int dim = 0; dim < tile.head_dim; ++dim) {
      // Adding zero makes a negative zero positive: which of the two it is depends on unseen keys.
      out[dim] = (state.acc[row * tile.head_dim + dim] + 0.0F) * inverse;
    }
  }
}

AttentionState state_of(const AttentionTile& tile) {
  const State state(tile);
  return {state.max, state.sum, state.acc};
}

void store(const KvTokens& tokens) {
  const KvLayout layout{.kv_heads = 1, .head_dim = tokens.head_dim, .dtype = tokens.dtype};
  auto* k = reinterpret_cast<uint16_t*>(tokens.k_page);
  auto* v = reinterpret_cast<uint16_t*>(tokens.v_page);
  for (int i = 0; i < tokens.num_tokens; ++i) {
    const int token = tokens.first_token + i;
    for (int dim = 0; dim < tokens.head_dim; ++dim) {
      const int64_t source = i * tokens.stride + dim;
      k[layout.k_index(token, dim)] = half_from_float(tokens.dtype, tokens.k[source]);
      v[layout.v_index(token, dim)] = half_from_float(tokens.dtype, tokens.v[source]);
    }
  }
}

constexpr AttentionKernels kKernels = {scratch_bytes, begin,  visit, visit_steps,
                                       state_of,      finish, store};

}  // namespace

const AttentionKernels& attention_kernels_scalar() { return kKernels; }

}  // namespace winnow

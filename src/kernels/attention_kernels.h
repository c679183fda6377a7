// One instruction-set level's attention of a tile of query rows, KV block by KV block, and the
// write of new K and V into a page. Plain pointers, so that isa/ files need nothing else.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/kv_layout.h"

namespace winnow {

// A tile: `queries` consecutive positions of the `group` heads that share one KV head. Packed row r
// is query r / group, head r % group; its numbers depend on no other row of the tile.
struct AttentionTile {
  const float* q = nullptr;  // row r at (r / group) * query_stride + (r % group) * head_dim
  float* out = nullptr;      // laid out as q; must not alias it
  int64_t query_stride = 0;
  int32_t queries = 0;
  int32_t group = 0;
  int32_t head_dim = 0;  // 16 to 256, a multiple of 16
  int32_t first_position = 0;
  int32_t window = 0;  // a row sees itself and the window - 1 tokens before it; 0 = all before it
  KvDType dtype = KvDType::kBf16;
  float scale = 0;     // multiplies q . k
  float soft_cap = 0;  // 0 = none
  std::byte* scratch =
      nullptr;  // scratch_bytes(rows, head_dim), 64-byte aligned; the tile's state lives here
};

// A run of tokens of one page that a tile visits.
struct AttentionBlock {
  const std::byte* k = nullptr;  // the KV head's K of the page (kv_layout.h), 64-byte aligned
  const std::byte* v = nullptr;
  int32_t position = 0;             // of the page's token 0
  int32_t begin_token = 0;          // within the page, a multiple of 32
  int32_t end_token = kPageTokens;  // likewise
};

// Tokens per step of visit_steps.
inline constexpr int kStepTokens = 32;
// Steps that are worked on together: the tokens of a page.
inline constexpr int kMaxSteps = kPageTokens / kStepTokens;

// kStepTokens tokens of one page from `token` on, a multiple of kStepTokens.
struct AttentionStep {
  const std::byte* k = nullptr;  // as in AttentionBlock
  const std::byte* v = nullptr;
  int32_t token = 0;
};

// New tokens of one KV head that fall into one page.
struct KvTokens {
  const float* k = nullptr;  // token t at t * stride
  const float* v = nullptr;
  int64_t stride = 0;
  int32_t first_token = 0;  // within the page
  int32_t num_tokens = 0;   // first_token + num_tokens <= kPageTokens
  int32_t head_dim = 0;
  KvDType dtype = KvDType::kBf16;
  std::byte* k_page = nullptr;  // the KV head's K of the page
  std::byte* v_page = nullptr;
};

// Online softmax state of a tile's rows over what it has visited. Logits are in units of log2: the
// softmax of row r is exp2(logit - max[r]) / sum[r].
struct AttentionState {
  float* max = nullptr;  // [rows]
  float* sum = nullptr;  // [rows]
  float* acc = nullptr;  // [rows, head_dim], not divided by sum
};

struct AttentionKernels {
  int64_t (*scratch_bytes)(int32_t rows, int32_t head_dim);
  // Packs q and clears the state.
  void (*begin)(const AttentionTile& tile);
  // Adds blocks, in their order, to every row that sees any of them. Tokens a row does not see
  // contribute exactly nothing to it, whatever the page holds there. How blocks are shared out
  // among visits leaves no trace.
  void (*visit)(const AttentionTile& tile, const AttentionBlock* blocks, int32_t num_blocks);
  // The same for steps that every row of the tile sees whole, from any pages. They are worked on
  // kMaxSteps at a time from the first on: a run that is cut at a multiple of that has the same
  // bits.
  void (*visit_steps)(const AttentionTile& tile, const AttentionStep* steps, int32_t num_steps);
  // Of what was visited so far, within the tile's scratch. May be changed once no visit follows.
  // Asking between visits may move the last bit of `sum`.
  AttentionState (*state)(const AttentionTile& tile);
  // Ends the tile: out = (acc + 0) * (1 / sum).
  void (*finish)(const AttentionTile& tile);
  // Rounds to nearest even; f16 saturates at +-65504. NaN stays NaN.
  void (*store)(const KvTokens& tokens);
};

const AttentionKernels& attention_kernels_scalar();
const AttentionKernels& attention_kernels_avx2();
const AttentionKernels& attention_kernels_avx512();
const AttentionKernels& attention_kernels_avx512bf16();
const AttentionKernels& attention_kernels_amx();
const AttentionKernels& attention_kernels_neon();

}  // namespace winnow

// One instruction-set level's part of block-sparse attention besides the attention of kept blocks:
// the score of every block for a tile of query rows, the share of the rows' attention that each
// block would get, and the correction for the blocks left out. See docs/block-sparse.md. Logits are
// in units of log2.
#pragma once

#include <cstddef>
#include <cstdint>

namespace winnow {

// Rows of a score tile, side by side: arrays over (block, row) are [block][kScoreRows].
inline constexpr int kScoreRows = 16;

// Up to kScoreRows positions of one query head. A row's numbers depend on no other row.
struct ScoreTile {
  const float* q = nullptr;  // row r at r * row_stride
  int64_t row_stride = 0;
  int32_t rows = 0;      // 1 to kScoreRows
  int32_t head_dim = 0;  // 16 to 256, a multiple of 16
  float scale = 0;       // multiplies q . k
  int32_t rank = 0;      // numbers of a key's sketch, a multiple of 4 up to 64; 0 = means only
  const float* projection = nullptr;  // [head_dim][rank], of queries
  std::byte* scratch = nullptr;       // scratch_bytes(head_dim, rank), 64-byte aligned
};

// Neighbouring blocks of one page and KV head.
struct BlockSummaries {
  const float* k_means = nullptr;        // [num_blocks][head_dim]
  const uint8_t* sketches = nullptr;     // [num_blocks * block_tokens][rank], each plus 128
  const float* sketch_scales = nullptr;  // [num_blocks]
  int32_t num_blocks = 0;
  int32_t block_tokens = 0;  // a multiple of 4
};

// Softmax state of the keys that need no score.
struct ForcedMass {
  const float* max = nullptr;  // [rows]
  const float* sum = nullptr;  // [rows], of exp2(logit - max)
};

// Blocks that enter a softmax as one key each: their mean key, mean value and number of tokens.
struct BlockCorrection {
  const float* mean_logits = nullptr;     // of block i: row blocks[i] of [block][kScoreRows]
  const int32_t* blocks = nullptr;        // [num_blocks]
  const float* const* v_means = nullptr;  // [num_blocks], each [head_dim]
  int32_t num_blocks = 0;
  float log2_tokens = 0;     // of a block
  float* weights = nullptr;  // [num_blocks][kScoreRows], overwritten
};

// The softmax state that a correction is added to: row r at r * stride of max and sum, and at
// r * stride * head_dim of acc.
struct CorrectedRows {
  float* max = nullptr;
  float* sum = nullptr;
  float* acc = nullptr;
  int64_t stride = 0;
  int32_t rows = 0;
  int32_t head_dim = 0;
};

struct BlockKernels {
  int64_t (*scratch_bytes)(int32_t head_dim, int32_t rank);
  // Packs q and its sketch: q . projection in int8, one scale per row.
  void (*begin)(const ScoreTile& tile);
  // mean_logits = q . k_mean; scores = mean_logits + max over the block's keys of the product of
  // sketches + log2(block_tokens) / 3. Both [num_blocks][kScoreRows]; scores may be null if the
  // rank is 0. A row of q that is not finite has NaN scores.
  void (*score)(const ScoreTile& tile, const BlockSummaries& blocks, float* mean_logits,
                float* scores);
  // shares[j] = sqrt(mean over rows of p^2), p = exp2(scores[j][row]) as part of the forced mass
  // and all blocks. Overwrites scores. A NaN anywhere in a row makes all its shares NaN.
  void (*shares)(float* scores, int32_t num_blocks, int32_t rows, const ForcedMass& forced,
                 float* shares);
  void (*correct)(const BlockCorrection& correction, const CorrectedRows& rows);
};

const BlockKernels& block_kernels_scalar();
const BlockKernels& block_kernels_avx2();
const BlockKernels& block_kernels_avx512();
const BlockKernels& block_kernels_neon();

}  // namespace winnow

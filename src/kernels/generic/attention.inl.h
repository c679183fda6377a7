// Attention of a tile of rows, a KV block at a time: logits, online softmax, weighted sum of V.
// Every row keeps its own maximum and its own order of keys, so the rows beside it and the tokens
// it does not see leave no trace in its bits. Include inside isa/ files only.
#pragma once

#include "kernels/generic/attention_products.inl.h"
#include "kernels/generic/exp2.inl.h"

namespace winnow {
namespace {

// S is the vector vocabulary; Products are the two matrix products (attention_products.inl.h).
template <class S, class Products>
struct Attention {
  using Vec = typename S::Vec;

  static TileState state_of(const AttentionTile& tile) {
    return {tile.scratch, tile.queries * tile.group, tile.head_dim};
  }
  static Strips strips_of(const TileState& state) { return {state.rows, Products::kStripRows}; }

  static int64_t scratch_bytes(int32_t rows, int32_t head_dim) {
    return TileState(nullptr, rows, head_dim).bytes;
  }

  static void begin(const AttentionTile& tile) {
    const TileState state = state_of(tile);
    const Strips strips = strips_of(state);
    // The logits come out in units of log2, or as the argument of the cap's tanh.
    const float scale = tile.soft_cap > 0 ? tile.scale / tile.soft_cap : tile.scale * kLog2E;
    for (int32_t row = 0; row < state.rows; ++row) {
      const float* q = tile.q + row_offset(tile, row);
      Products::pack_q_row(tile, q, scale, state.q, row / strips.rows, row % strips.rows);
      state.max[row] = kNoLogit;
      state.sum[row] = 0;
      state.ones[row] = 1;
    }
    for (int64_t i = 0; i < int64_t{state.rows} * tile.head_dim; i += S::kLanes) {
      S::store(state.acc + i, S::zero());
    }
  }

  static void visit(const AttentionTile& tile, const AttentionBlock* blocks, int32_t num_blocks) {
    for (int32_t i = 0; i < num_blocks; ++i) visit_block(tile, blocks[i]);
  }

  static void visit_steps(const AttentionTile& tile, const AttentionStep* steps,
                          int32_t num_steps) {
    for (int32_t i = 0; i < num_steps; i += kMaxSteps) {
      visit_some_steps(tile, steps + i, smaller(kMaxSteps, num_steps - i));
    }
  }

  static void finish(const AttentionTile& tile) {
    const TileState state = state_of(tile);
    for (int32_t row = 0; row < state.rows; ++row) {
      const Vec inverse = S::set1(1 / state.sum[row]);
      const float* acc = state.acc + int64_t{row} * tile.head_dim;
      float* out = tile.out + row_offset(tile, row);
      for (int32_t i = 0; i < tile.head_dim; i += S::kLanes) {
        // Adding zero makes a negative zero positive: which of the two it is depends on unseen
        // keys.
        S::store(out + i, S::mul(S::add(S::load(acc + i), S::zero()), inverse));
      }
    }
  }

  static AttentionState state(const AttentionTile& tile) {
    const TileState state = state_of(tile);
    return {state.max, state.sum, state.acc};
  }

 private:
  static void visit_block(const AttentionTile& tile, const AttentionBlock& block) {
    const TileState state = state_of(tile);
    const TokenRange seen = seen_by_any(tile, block, 0, state.rows - 1);
    if (seen.empty()) return;
    compute_logits(tile, block, state, seen.in_steps());
    const Strips strips = strips_of(state);
    for (int32_t strip = 0; strip < strips.count; ++strip) {
      const TokenRange tokens = seen_by_strip(tile, block, strips, strip);
      if (tokens.empty()) continue;
      for (int32_t i = 0; i < strips.size(strip); ++i) {
        const int32_t row = strips.begin(strip) + i;
        soften(tile, state, row, seen_by(tile, block, row), tokens.in_steps());
      }
    }
    add_values(tile, block, state, seen.in_steps());
  }

  static void visit_some_steps(const AttentionTile& tile, const AttentionStep* steps,
                               int32_t num_steps) {
    const TileState state = state_of(tile);
    const Strips strips = strips_of(state);
    for (int32_t i = 0; i < num_steps; ++i) {
      const auto* k = reinterpret_cast<const uint16_t*>(steps[i].k);
      const Operand operand = Products::prepare_k(tile, k, steps[i].token, state.operand);
      for (int32_t strip = 0; strip < strips.count; ++strip) {
        Products::logits(
            tile, state.q, strip, strips.size(strip), operand,
            state.weights + int64_t{strips.begin(strip)} * kPageTokens + i * kStepTokens);
      }
    }
    const TokenRange all{0, num_steps * kStepTokens};
    for (int32_t row = 0; row < state.rows; ++row) soften(tile, state, row, all, all);
    for (int32_t i = 0; i < num_steps; ++i) {
      add_step(tile, steps[i], state, i * kStepTokens, i == 0 ? state.shrink : state.ones);
    }
  }

  static TokenRange seen_by_strip(const AttentionTile& tile, const AttentionBlock& block,
                                  const Strips& strips, int32_t strip) {
    const int32_t first = strips.begin(strip);
    return seen_by_any(tile, block, first, first + strips.size(strip) - 1);
  }

  static void compute_logits(const AttentionTile& tile, const AttentionBlock& block,
                             const TileState& state, TokenRange steps) {
    const Strips strips = strips_of(state);
    const auto* k = reinterpret_cast<const uint16_t*>(block.k);
    for (int32_t token = steps.begin; token < steps.end; token += kStepTokens) {
      const TokenRange step{token, token + kStepTokens};
      const Operand operand = Products::prepare_k(tile, k, token, state.operand);
      for (int32_t strip = 0; strip < strips.count; ++strip) {
        const TokenRange tokens = seen_by_strip(tile, block, strips, strip);
        if (tokens.empty() || !tokens.in_steps().contains(step)) continue;
        Products::logits(tile, state.q, strip, strips.size(strip), operand,
                         state.weights + int64_t{strips.begin(strip)} * kPageTokens + token);
      }
    }
  }

  // Turns a row's logits at `steps`, of which it sees `seen`, into weights relative to its new
  // maximum.
  static void soften(const AttentionTile& tile, const TileState& state, int32_t row,
                     TokenRange seen, TokenRange steps) {
    float* logits = state.weights + int64_t{row} * kPageTokens;
    const bool masked = !seen.contains(steps);
    if (masked || tile.soft_cap > 0) prepare_logits(tile, logits, seen, steps, masked);

    // Two chains by the parity of the vector within the page, wherever the steps begin.
    Vec max0 = S::set1(state.max[row]);
    Vec max1 = max0;
    for (int32_t i = steps.begin; i < steps.end; i += 2 * S::kLanes) {
      max0 = S::max(S::load(logits + i), max0);
      max1 = S::max(S::load(logits + i + S::kLanes), max1);
    }
    const float max = S::largest(S::max(max0, max1));
    // While every logit is minus infinity, any finite reference will do.
    const float reference = max == kNoLogit ? 0 : max;
    const Vec origin = S::set1(reference);
    Vec sum0 = S::zero();
    Vec sum1 = S::zero();
    for (int32_t i = steps.begin; i < steps.end; i += 2 * S::kLanes) {
      const Vec weight0 = exp2_weight<S>(S::sub(S::load(logits + i), origin));
      const Vec weight1 = exp2_weight<S>(S::sub(S::load(logits + i + S::kLanes), origin));
      sum0 = S::add(sum0, weight0);
      sum1 = S::add(sum1, weight1);
      Products::store_weights(logits, i, weight0);
      Products::store_weights(logits, i + S::kLanes, weight1);
    }
    const float shrink = S::first(exp2_weight<S>(S::set1(state.max[row] - reference)));
    const float shrunk = state.sum[row] * shrink;
    state.shrink[row] = shrink;
    state.sum[row] = shrunk + S::sum(S::add(sum0, sum1));
    state.max[row] = max;
  }

  // Caps the logits and hides those of unseen tokens.
  static void prepare_logits(const AttentionTile& tile, float* logits, TokenRange seen,
                             TokenRange steps, bool masked) {
    for (int32_t i = steps.begin; i < steps.end; i += S::kLanes) {
      Vec logit = S::load(logits + i);
      if (tile.soft_cap > 0) logit = S::mul(tanh<S>(logit), S::set1(tile.soft_cap * kLog2E));
      if (masked) {
        logit = S::select(S::lanes_between(seen.begin - i, seen.end - i), logit, S::set1(kNoLogit));
      }
      S::store(logits + i, logit);
    }
  }

  static void add_values(const AttentionTile& tile, const AttentionBlock& block,
                         const TileState& state, TokenRange steps) {
    const auto* v = reinterpret_cast<const uint16_t*>(block.v);
    const bool all_see_all = seen_by(tile, block, 0).contains(steps) &&
                             seen_by(tile, block, state.rows - 1).contains(steps);
    if (!all_see_all && !all_finite<S>(tile, v, steps)) {
      add_values_row_by_row(tile, block, state);
      return;
    }
    const Strips strips = strips_of(state);
    for (int32_t dim = 0; dim < tile.head_dim; dim += 2 * kKvLanes) {
      const int32_t num_groups = smaller(2, (tile.head_dim - dim) / kKvLanes);
      const Operand operand =
          Products::prepare_v(tile, v_group(v, dim), num_groups, steps, state.operand);
      for (int32_t strip = 0; strip < strips.count; ++strip) {
        const TokenRange tokens = seen_by_strip(tile, block, strips, strip);
        if (tokens.empty()) continue;
        weigh(tile, state, strips.begin(strip), strips.size(strip), operand, dim, num_groups,
              tokens.in_steps());
      }
    }
  }

  // V of one step, whose weights stand at `weights_begin` of each row.
  static void add_step(const AttentionTile& tile, const AttentionStep& step, const TileState& state,
                       int32_t weights_begin, const float* shrink) {
    const auto* v = reinterpret_cast<const uint16_t*>(step.v);
    const Strips strips = strips_of(state);
    const TokenRange tokens{step.token, step.token + kStepTokens};
    for (int32_t dim = 0; dim < tile.head_dim; dim += 2 * kKvLanes) {
      const int32_t num_groups = smaller(2, (tile.head_dim - dim) / kKvLanes);
      const Operand operand =
          Products::prepare_v(tile, v_group(v, dim), num_groups, tokens, state.operand);
      for (int32_t strip = 0; strip < strips.count; ++strip) {
        const int32_t row = strips.begin(strip);
        Products::weigh(tile, state.weights + int64_t{row} * kPageTokens, weights_begin,
                        strips.size(strip), operand, num_groups, tokens, shrink + row,
                        state.acc + int64_t{row} * tile.head_dim + dim);
      }
    }
  }

  // A weight of zero does not hide an infinity or NaN of an unseen token: each row gets V without
  // those.
  static void add_values_row_by_row(const AttentionTile& tile, const AttentionBlock& block,
                                    const TileState& state) {
    const auto* v = reinterpret_cast<const uint16_t*>(block.v);
    for (int32_t row = 0; row < state.rows; ++row) {
      const TokenRange seen = seen_by(tile, block, row);
      if (seen.empty()) continue;
      const TokenRange steps = seen.in_steps();
      for (int32_t dim = 0; dim < tile.head_dim; dim += 2 * kKvLanes) {
        const int32_t num_groups = smaller(2, (tile.head_dim - dim) / kKvLanes);
        copy_seen(v_group(v, dim), num_groups, seen, state.masked_v);
        const Operand operand =
            Products::prepare_v(tile, state.masked_v, num_groups, steps, state.operand);
        weigh(tile, state, row, 1, operand, dim, num_groups, steps);
      }
    }
  }

  static void weigh(const AttentionTile& tile, const TileState& state, int32_t row, int32_t rows,
                    Operand operand, int32_t dim, int32_t num_groups, TokenRange tokens) {
    Products::weigh(tile, state.weights + int64_t{row} * kPageTokens, tokens.begin, rows, operand,
                    num_groups, tokens, state.shrink + row,
                    state.acc + int64_t{row} * tile.head_dim + dim);
  }
};

}  // namespace
}  // namespace winnow

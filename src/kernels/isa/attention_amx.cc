// Attention with bf16 products on AMX tiles, K and V straight from the page. An f16 cache takes the
// f32 products of AVX-512.
//
// Rows lie in strips of 16. A visit takes one strip or two at a time: logits, weights, V. The
// weights of a step stand behind the products of the next step, so that the vector units make them
// while the tiles multiply.
#include "kernels/generic/attention.inl.h"
#include "kernels/generic/attention_store.inl.h"
#include "kernels/isa/attention_tiles.h"
#include "kernels/isa/attention_weights.h"
#include "kernels/isa/bf16_avx512.h"

namespace winnow {
namespace {

// A new reference stands above the largest logit by so much, so that it seldom moves again: the
// accumulator is scaled only where a later logit comes out at twice the reference's weight.
constexpr float kHeadroom = 7;
// Logits of one strip and step, and their weights.
constexpr int kStepLogits = kStripRows * kStepTokens;
constexpr int kStripLogits = kMaxSteps * kStepLogits;

// The tile's scratch. Rows come in whole strips.
struct StripState {
  StripState(std::byte* scratch, int32_t num_rows, int32_t dims)
      : rows(num_rows), strips(divide_up(num_rows, kStripRows)), head_dim(dims) {
    const int64_t room = int64_t{strips} * kStripRows;
    ScratchArrays arrays(scratch);
    const auto take = [&](int64_t floats) { return arrays.take(floats); };
    max = take(room);
    sum = take(room);
    acc = take(room * dims);
    q = reinterpret_cast<uint16_t*>(take(room * dims / 2));
    logits = take(2 * kStripLogits);
    weights = reinterpret_cast<uint16_t*>(take(kStripLogits));
    masked_v = reinterpret_cast<uint16_t*>(take(kVGroupUnits));
    bytes = arrays.bytes();
  }

  int32_t strip_rows(int32_t strip) const { return smaller(kStripRows, rows - strip * kStripRows); }

  int32_t rows;
  int32_t strips;
  int32_t head_dim;
  float* max;          // [rows]: the references of the weights, whole numbers
  float* sum;          // [rows]
  float* acc;          // [rows][head_dim]
  uint16_t* q;         // [strip][head_dim / 32][16 rows][32 dims], and what is left of head_dim
  float* logits;       // [2 strips][step][2 tiles][16 rows][16 tokens]
  uint16_t* weights;   // [2 strips][step][16 rows][32 tokens] bf16
  uint16_t* masked_v;  // V of a group of dims as one row may see it
  int64_t bytes;
};

// One or two strips and the steps of which their rows see any.
struct Unit {
  int32_t first_strip;
  const AttentionStep* steps;
  int32_t num_steps;
  const AttentionBlock* block;  // whose steps they are, where some row does not see all of them
  int32_t first_token;          // of the steps, in the block's page
};

class TileAttention {
 public:
  explicit TileAttention(const AttentionTile& tile)
      : tile_(tile), state_(tile.scratch, tile.queries * tile.group, tile.head_dim) {}

  void begin() {
    const int32_t dims = tile_.head_dim;
    // The logits come out in units of log2, or as the argument of the cap's tanh.
    const float scale = tile_.soft_cap > 0 ? tile_.scale / tile_.soft_cap : tile_.scale * kLog2E;
    for (int32_t row = 0; row < state_.rows; ++row) {
      const float* q = tile_.q + row_offset(tile_, row);
      uint16_t* strip = state_.q + int64_t{row / kStripRows} * kStripRows * dims;
      for (int32_t dim = 0; dim < dims; dim += 32) {
        const int32_t width = smaller(32, dims - dim);
        Bf16Operands::pack(q + dim, width, scale,
                           strip + dim * kStripRows + row % kStripRows * width);
      }
      state_.max[row] = kNoLogit;
      state_.sum[row] = 0;
    }
    for (int64_t i = 0; i < int64_t{state_.rows} * dims; i += 16) {
      _mm512_store_ps(state_.acc + i, _mm512_setzero_ps());
    }
  }

  void finish() const {
    for (int32_t row = 0; row < state_.rows; ++row) {
      const __m512 inverse = _mm512_set1_ps(1 / state_.sum[row]);
      const float* acc = state_.acc + int64_t{row} * tile_.head_dim;
      float* out = tile_.out + row_offset(tile_, row);
      for (int32_t i = 0; i < tile_.head_dim; i += 16) {
        // Adding zero makes a negative zero positive: which of the two it is depends on unseen
        // keys.
        const __m512 sum = _mm512_add_ps(_mm512_load_ps(acc + i), _mm512_setzero_ps());
        _mm512_storeu_ps(out + i, _mm512_mul_ps(sum, inverse));
      }
    }
  }

  AttentionState state() const { return {state_.max, state_.sum, state_.acc}; }

  void visit(const AttentionStep* steps, int32_t num_steps, const AttentionBlock* block) {
    TileConfig config = half_depth() ? kHalfDepthTiles : kFullTiles;
    if (state_.strips == 1) {
      const auto rows = static_cast<uint8_t>(state_.rows);
      for (int tile : {0, 1, 2, 3, kLeft0}) config.rows[tile] = rows;
      if (half_depth()) config.rows[kHalfLeft] = rows;
    }
    tile_configure(config);
    for (int32_t strip = 0; strip < state_.strips;) {
      const int32_t num_strips = half_depth() ? 1 : smaller(2, state_.strips - strip);
      Unit unit{strip, steps, num_steps, nullptr, 0};
      if (block != nullptr) narrow(unit, num_strips, *block);
      if (unit.num_steps > 0) num_strips == 2 ? run<2>(unit) : run<1>(unit);
      strip += num_strips;
    }
    tile_release();
  }

 private:
  static constexpr float kLog2E = 1.4426950408889634F;

  bool half_depth() const { return state_.head_dim % 32 != 0; }

  void narrow(Unit& unit, int32_t num_strips, const AttentionBlock& block) const {
    const int32_t first = unit.first_strip * kStripRows;
    const int32_t last = smaller(state_.rows, first + num_strips * kStripRows) - 1;
    const TokenRange seen = seen_by_any(tile_, block, first, last);
    unit.num_steps = 0;
    if (seen.empty()) return;
    const TokenRange tokens = seen.in_steps();
    unit.steps += tokens.begin / kStepTokens;
    unit.num_steps = (tokens.end - tokens.begin) / kStepTokens;
    unit.first_token = tokens.begin;
    const bool all_see_all = seen_by(tile_, block, first).contains(tokens) &&
                             seen_by(tile_, block, last).contains(tokens);
    if (!all_see_all) unit.block = &block;
  }

  template <int kStrips>
  void run(const Unit& unit) {
    alignas(64) float origins[kStrips * kStripRows];
    for (int i = 0; i < kStrips; ++i) {
      const float* max = state_.max + (unit.first_strip + i) * kStripRows;
      _mm512_store_ps(origins + i * kStripRows, SoftmaxWeights::origin_of(_mm512_load_ps(max)));
    }
    constexpr int kSteps = 2 / kStrips;
    __m512i large[kStrips];
    for (__m512i& strip : large) strip = _mm512_setzero_si512();
    const auto weigh_steps = [&](int32_t begin, int32_t end) {
      for (int i = 0; i < kStrips; ++i) {
        for (int32_t step = begin; step < end; ++step) {
          if (unit.block != nullptr || tile_.soft_cap > 0) prepare_logits(unit, i, step);
          weigh(unit, i, step, origins + i * kStripRows, large[i]);
        }
      }
    };
    TileSums sums;
    for (int32_t step = 0; step < unit.num_steps; step += kSteps) {
      if (kSteps == 1 || step + 1 < unit.num_steps) {
        multiply_qk<kStrips, 4 / kStrips>(unit, step, sums);
      } else {
        multiply_qk<kStrips, 2>(unit, step, sums);
      }
      if (step > 0) weigh_steps(step - kSteps, step);
    }
    sums.store();
    weigh_steps((unit.num_steps - 1) / kSteps * kSteps, unit.num_steps);
    for (int i = 0; i < kStrips; ++i) {
      if (_mm512_movepi16_mask(large[i]) != 0) move_references(unit, i, origins + i * kStripRows);
    }
    if (unit.block != nullptr) {
      const auto* v = reinterpret_cast<const uint16_t*>(unit.block->v);
      const TokenRange tokens{unit.first_token, unit.first_token + unit.num_steps * kStepTokens};
      if (!all_finite<Avx512>(tile_, v, tokens)) {
        for (int i = 0; i < kStrips; ++i) {
          add_sums(unit, i);
          add_values_row_by_row(unit, i);
        }
        return;
      }
    }
    add_values<kStrips>(unit);
  }

  // Stores the sums of the block before, and leaves its own in the registers.
  template <int kStrips, int kGroups>
  void multiply_qk(const Unit& unit, int32_t step, TileSums& sums) {
    using Block = TileBlock<kStrips, kGroups>;
    const int32_t dims = state_.head_dim;
    const int64_t strip = int64_t{kStripRows} * dims;
    const int64_t group = int64_t{kKvLanes} * dims;
    const uint16_t* q = state_.q + unit.first_strip * strip;
    const auto k_of = [&](const AttentionStep& from) {
      return reinterpret_cast<const uint16_t*>(from.k) + int64_t{from.token} * dims;
    };
    const uint16_t* k = k_of(unit.steps[step]);
    const uint16_t* next = kGroups == 4 ? k_of(unit.steps[step + 1]) : k;
    const auto operands = [&](int32_t dim) -> TileOperands {
      const int64_t at = int64_t{dim} * 16;
      return {{q + at, q + strip + at}, {k + at, k + group + at, next + at, next + group + at}};
    };
    const TileSums before = sums;
    sums = TileSums{{}, kRowBytes};
    for (int i = 0; i < Block::kSums; ++i) {
      sums.to[i] =
          state_.logits + step * kStepLogits + i / kGroups * kStripLogits + i % kGroups * kSumTile;
    }
    int32_t dim = 0;
    if (dims < 32) {
      before.store();
      Block::clear();
    } else {
      Block::template start<true>(before, sums, operands(0));
      dim = 32;
    }
    for (; dim + 32 <= dims; dim += 32) Block::add(operands(dim));
    if constexpr (kStrips == 1) {
      if (dim < dims) Block::add_half(operands(dim));
    }
  }

  float* logits_of(int32_t strip, int32_t step) const {
    return state_.logits + strip * kStripLogits + step * kStepLogits;
  }
  uint16_t* weights_of(int32_t strip, int32_t step) const {
    return state_.weights + strip * kStripLogits + step * kStepLogits;
  }

  // Caps the logits and hides those of unseen tokens.
  void prepare_logits(const Unit& unit, int32_t strip, int32_t step) {
    const int32_t first_row = (unit.first_strip + strip) * kStripRows;
    const int32_t token = unit.first_token + step * kStepTokens;
    for (int32_t i = 0; i < state_.strip_rows(unit.first_strip + strip); ++i) {
      TokenRange seen{token, token + kStepTokens};
      if (unit.block != nullptr) seen = seen_by(tile_, *unit.block, first_row + i);
      for (int32_t half = 0; half < 2; ++half) {
        float* at = logits_of(strip, step) + half * kSumTile + i * 16;
        __m512 logit = _mm512_load_ps(at);
        if (tile_.soft_cap > 0) {
          logit = _mm512_mul_ps(tanh<Avx512>(logit), _mm512_set1_ps(tile_.soft_cap * kLog2E));
        }
        const int32_t begin = token + half * 16;
        const auto lanes = Avx512::lanes_between(seen.begin - begin, seen.end - begin);
        _mm512_store_ps(at, Avx512::select(lanes, logit, _mm512_set1_ps(kNoLogit)));
      }
    }
  }

  void weigh(const Unit& unit, int32_t strip, int32_t step, const float* origins,
             __m512i& large_before) {
    const int32_t rows = state_.strip_rows(unit.first_strip + strip);
    const float* logits = logits_of(strip, step);
    uint16_t* weights = weights_of(strip, step);
    __m512i large = large_before;
#pragma GCC unroll 4
    for (int32_t i = 0; i < rows; ++i) {
      const float* from = logits + i * 16;
      _mm512_store_si512(
          weights + i * kStepTokens,
          SoftmaxWeights::of(from, from + kSumTile, _mm512_set1_ps(origins[i]), large));
    }
    large_before = large;
  }

  // Weighs the rows again whose reference is too low, or that have none.
  void move_references(const Unit& unit, int32_t strip, const float* origins) {
    for (int32_t i = 0; i < state_.strip_rows(unit.first_strip + strip); ++i) {
      __m512i large = _mm512_setzero_si512();
      __m512 largest = _mm512_set1_ps(kNoLogit);
      for (int32_t step = 0; step < unit.num_steps; ++step) {
        const float* logits = logits_of(strip, step) + i * 16;
        SoftmaxWeights::of(logits, logits + kSumTile, _mm512_set1_ps(origins[i]), large);
        // In this order NaN is passed over; its weight is NaN anyway.
        largest = _mm512_max_ps(_mm512_load_ps(logits), largest);
        largest = _mm512_max_ps(_mm512_load_ps(logits + kSumTile), largest);
      }
      if (_mm512_movepi16_mask(large) == 0) continue;
      const int32_t row = (unit.first_strip + strip) * kStripRows + i;
      move_reference(row, _mm512_reduce_max_ps(largest));
      for (int32_t step = 0; step < unit.num_steps; ++step) {
        weigh_exactly(logits_of(strip, step) + i * 16, state_.max[row],
                      weights_of(strip, step) + i * kStepTokens);
      }
    }
  }

  void move_reference(int32_t row, float largest) {
    if (!(largest > state_.max[row])) return;
    const float reference = __builtin_ceilf(largest) + kHeadroom;
    const __m512 factor = exp2_weight<Avx512>(_mm512_set1_ps(state_.max[row] - reference));
    float* acc = state_.acc + int64_t{row} * state_.head_dim;
    for (int32_t i = 0; i < state_.head_dim; i += 16) {
      _mm512_store_ps(acc + i, _mm512_mul_ps(_mm512_load_ps(acc + i), factor));
    }
    state_.sum[row] *= Avx512::first(factor);
    state_.max[row] = reference;
  }

  // For any reference, infinite ones and none included.
  static void weigh_exactly(const float* logits, float max, uint16_t* weights) {
    const float reference = max == kNoLogit ? 0 : max;
    const __m512 origin = SoftmaxWeights::origin_of(_mm512_set1_ps(reference));
    if (Avx512::first(origin) < __builtin_inff()) {
      __m512i large = _mm512_setzero_si512();
      _mm512_store_si512(weights, SoftmaxWeights::of(logits, logits + kSumTile, origin, large));
      return;
    }
    for (int32_t half = 0; half < 2; ++half) {
      const __m512 logit = _mm512_load_ps(logits + half * kSumTile);
      Bf16Operands::store_weights(
          reinterpret_cast<float*>(weights), half * 16,
          exp2_weight<Avx512>(_mm512_sub_ps(logit, _mm512_set1_ps(reference))));
    }
  }

  void add_sums(const Unit& unit, int32_t strip) {
    const auto ones = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f803f80));
    float* sums = state_.sum + (unit.first_strip + strip) * kStripRows;
    const int32_t rows = state_.strip_rows(unit.first_strip + strip);
    for (int32_t i = 0; i < rows; ++i) {
      __m512 sum = _mm512_setzero_ps();
      for (int32_t step = 0; step < unit.num_steps; ++step) {
        const __m512i bits = _mm512_load_si512(weights_of(strip, step) + i * kStepTokens);
        sum = _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(bits), ones);
      }
      sums[i] += _mm512_reduce_add_ps(sum);
    }
  }

  template <int kStrips>
  void add_values(const Unit& unit) {
    constexpr int kGroups = 4 / kStrips;
    const int32_t groups = state_.head_dim / kKvLanes;
    TileSums sums;
    int32_t strips_summed = 0;
    for (int32_t group = 0; group < groups; group += kGroups) {
      if constexpr (kStrips == 2) {
        multiply_v<2, 2>(unit, group, sums);
      } else {
        switch (smaller(4, groups - group)) {
          case 1:
            multiply_v<1, 1>(unit, group, sums);
            break;
          case 2:
            multiply_v<1, 2>(unit, group, sums);
            break;
          case 3:
            multiply_v<1, 3>(unit, group, sums);
            break;
          default:
            multiply_v<1, 4>(unit, group, sums);
        }
      }
      if (strips_summed < kStrips) add_sums(unit, strips_summed++);
    }
    sums.store();
    while (strips_summed < kStrips) add_sums(unit, strips_summed++);
  }

  // As multiply_qk.
  template <int kStrips, int kGroups>
  void multiply_v(const Unit& unit, int32_t group, TileSums& sums) {
    using Block = TileBlock<kStrips, kGroups>;
    const int32_t dims = state_.head_dim;
    const int64_t strip = int64_t{kStripRows} * dims;
    float* acc = state_.acc + unit.first_strip * strip + group * kKvLanes;
    const TileSums before = sums;
    sums = TileSums{{}, int64_t{dims} * 4};
    for (int i = 0; i < Block::kSums; ++i) {
      sums.to[i] = acc + i / kGroups * strip + i % kGroups * kKvLanes;
    }
    const auto operands = [&](int32_t step) -> TileOperands {
      const AttentionStep& from = unit.steps[step];
      const uint16_t* v = v_group(reinterpret_cast<const uint16_t*>(from.v), group * kKvLanes) +
                          int64_t{from.token} * kKvLanes;
      constexpr int64_t kGroup = int64_t{2} * kVGroupUnits;
      return {{weights_of(0, step), weights_of(1, step)},
              {v, v + kGroup, v + 2 * kGroup, v + 3 * kGroup}};
    };
    Block::template start<false>(before, sums, operands(0));
    for (int32_t step = 1; step < unit.num_steps; ++step) Block::add(operands(step));
  }

  // A weight of zero does not hide an infinity or NaN of an unseen token: each row gets V without
  // those.
  void add_values_row_by_row(const Unit& unit, int32_t strip) {
    const auto* v = reinterpret_cast<const uint16_t*>(unit.block->v);
    const int32_t first_row = (unit.first_strip + strip) * kStripRows;
    for (int32_t i = 0; i < state_.strip_rows(unit.first_strip + strip); ++i) {
      const TokenRange seen = seen_by(tile_, *unit.block, first_row + i);
      for (int32_t dim = 0; dim < state_.head_dim; dim += kKvLanes) {
        copy_seen(v_group(v, dim), 1, seen, state_.masked_v);
        const uint16_t* right = state_.masked_v + int64_t{unit.first_token} * kKvLanes;
        float* acc = state_.acc + int64_t{first_row} * state_.head_dim + dim;
        tile_load<0>(acc, int64_t{state_.head_dim} * 4);
        for (int32_t step = 0; step < unit.num_steps; ++step) {
          TileBlock<1, 1>::add({{weights_of(strip, step)}, {right + step * kOperandTile}});
        }
        // The logits are not needed any more.
        tile_store<0>(state_.logits, kRowBytes);
        _mm512_store_ps(acc + int64_t{i} * state_.head_dim, _mm512_load_ps(state_.logits + i * 16));
      }
    }
  }

  const AttentionTile& tile_;
  const StripState state_;
};

struct Level : Avx512 {
  static constexpr int kStripRows = 12;
  static constexpr int kPairedRows = 12;
};

using FloatAttention = Attention<Level, VectorProducts<Level, FloatDot<Level>>>;

bool takes_tiles(const AttentionTile& tile) { return tile.dtype == KvDType::kBf16; }

int64_t scratch_bytes(int32_t rows, int32_t head_dim) {
  const int64_t tiles = StripState(nullptr, rows, head_dim).bytes;
  const int64_t floats = FloatAttention::scratch_bytes(rows, head_dim);
  return tiles > floats ? tiles : floats;
}

void begin(const AttentionTile& tile) {
  takes_tiles(tile) ? TileAttention(tile).begin() : FloatAttention::begin(tile);
}

void visit(const AttentionTile& tile, const AttentionBlock& block) {
  if (!takes_tiles(tile)) return FloatAttention::visit(tile, block);
  AttentionStep steps[kMaxSteps];
  for (int32_t i = 0; i < kMaxSteps; ++i) steps[i] = {block.k, block.v, i * kStepTokens};
  TileAttention(tile).visit(steps, kMaxSteps, &block);
}

void visit_steps(const AttentionTile& tile, const AttentionStep* steps, int32_t num_steps) {
  if (!takes_tiles(tile)) return FloatAttention::visit_steps(tile, steps, num_steps);
  TileAttention(tile).visit(steps, num_steps, nullptr);
}

AttentionState state(const AttentionTile& tile) {
  return takes_tiles(tile) ? TileAttention(tile).state() : FloatAttention::state(tile);
}

void finish(const AttentionTile& tile) {
  takes_tiles(tile) ? TileAttention(tile).finish() : FloatAttention::finish(tile);
}

constexpr AttentionKernels kKernels = {
    scratch_bytes, begin, visit, visit_steps, state, finish, KvWriter<Level>::store,
};

}  // namespace

const AttentionKernels& attention_kernels_amx() { return kKernels; }

}  // namespace winnow

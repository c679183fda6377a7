// Attention with bf16 products on AMX tiles, K and V straight from the page. An f16 cache takes the
// f32 products of AVX-512.
//
// Rows lie in strips of 16. Two strips, or a single one, go through all blocks of a visit before
// the next: their queries, logits, weights and sums stay in the first-level cache. For 128 tokens
// they take their logits, weights and V in turn; the weights of one round of logits are made
// between the products of the next.
#include "kernels/generic/attention.inl.h"
#include "kernels/generic/attention_store.inl.h"
#include "kernels/isa/attention_weigher.h"

namespace winnow {
namespace {

class TileAttention {
 public:
  explicit TileAttention(const AttentionTile& tile)
      : tile_(tile), state_(tile.scratch, tile.queries * tile.group, tile.head_dim) {}

  void begin() {
    const int32_t dims = tile_.head_dim;
    // The logits come out in units of log2 / kLogitUnit, or as the argument of the cap's tanh.
    const float scale =
        tile_.soft_cap > 0 ? tile_.scale / tile_.soft_cap : tile_.scale * kLog2E * kLogitUnit;
    clear_spare_rows();
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
    clear(state_.lane_sums, int64_t{state_.rows} * StripState::kSumLanes);
    clear(state_.acc, int64_t{state_.rows} * dims);
  }

  void finish() const {
    add_lane_sums();
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

  AttentionState state() const {
    add_lane_sums();
    return {state_.max, state_.sum, state_.acc};
  }

  void visit(const AttentionBlock* blocks, int32_t num_blocks) {
    for_each_unit([&](int32_t first_strip, int32_t num_strips) {
      for (int32_t i = 0; i < num_blocks; ++i) {
        AttentionStep steps[kMaxSteps];
        for (int32_t step = 0; step < kMaxSteps; ++step) {
          steps[step] = {blocks[i].k, blocks[i].v, step * kStepTokens};
        }
        const StripSteps unit = seen_steps(first_strip, num_strips, steps, blocks[i]);
        if (unit.num_steps > 0) num_strips == 2 ? run<2>(unit) : run<1>(unit);
      }
    });
  }

  void visit_steps(const AttentionStep* steps, int32_t num_steps) {
    for_each_unit([&](int32_t first_strip, int32_t num_strips) {
      for (int32_t i = 0; i < num_steps; i += kMaxSteps) {
        const int32_t count = smaller(kMaxSteps, num_steps - i);
        const StripSteps unit{first_strip, steps + i, count, nullptr, 0};
        num_strips == 2 ? run<2>(unit) : run<1>(unit);
      }
    });
  }

 private:
  static void clear(float* numbers, int64_t count) {
    for (int64_t i = 0; i < count; i += 16) _mm512_store_ps(numbers + i, _mm512_setzero_ps());
  }

  // Rows that fill up the last strip. Weights are made of them too, which takes longer of what is
  // unfit.
  void clear_spare_rows() {
    const int32_t spare = state_.strips * kStripRows - state_.rows;
    if (spare == 0) return;
    for (int32_t i = 0; i < spare; ++i) state_.max[state_.rows + i] = 0;
    const int64_t strip = int64_t{kStripRows} * state_.head_dim;
    clear(reinterpret_cast<float*>(state_.q + (state_.strips - 1) * strip), strip / 2);
    // Tile registers of fewer rows do not write the logits of the others.
    if (state_.strips == 1) clear(state_.logits, 2 * kRoundLogits);
  }

  void add_lane_sums() const {
    for (int32_t row = 0; row < state_.rows; ++row) {
      float* lanes = state_.lane_sums + int64_t{row} * StripState::kSumLanes;
      state_.sum[row] += _mm512_reduce_add_ps(_mm512_load_ps(lanes));
      clear(lanes, StripState::kSumLanes);
    }
  }

  bool half_depth() const { return state_.head_dim % 32 != 0; }

  // visit_unit(first_strip, num_strips) with the tiles configured, which takes 220 cycles.
  template <class VisitUnit>
  void for_each_unit(VisitUnit visit_unit) {
    TileConfig config = half_depth() ? kHalfDepthTiles : kFullTiles;
    if (state_.strips == 1) {
      const auto rows = static_cast<uint8_t>(state_.rows);
      for (int tile : {0, 1, 2, 3, kLeft0}) config.rows[tile] = rows;
      if (half_depth()) config.rows[kHalfLeft] = rows;
    }
    tile_configure(config);
    for (int32_t strip = 0; strip < state_.strips;) {
      const int32_t num_strips = half_depth() ? 1 : smaller(2, state_.strips - strip);
      visit_unit(strip, num_strips);
      strip += num_strips;
    }
    tile_release();
  }

  // The steps of a page, kMaxSteps, as the rows of the strips see them.
  StripSteps seen_steps(int32_t first_strip, int32_t num_strips, const AttentionStep* steps,
                        const AttentionBlock& block) const {
    const int32_t first = first_strip * kStripRows;
    const int32_t last = smaller(state_.rows, first + num_strips * kStripRows) - 1;
    const TokenRange seen = seen_by_any(tile_, block, first, last);
    if (seen.empty()) return {first_strip, steps, 0, nullptr, 0};
    const TokenRange tokens = seen.in_steps();
    const bool all_see_all = seen_by(tile_, block, first).contains(tokens) &&
                             seen_by(tile_, block, last).contains(tokens);
    return {first_strip, steps + tokens.begin / kStepTokens,
            (tokens.end - tokens.begin) / kStepTokens, all_see_all ? nullptr : &block,
            tokens.begin};
  }

  template <int kStrips>
  void run(const StripSteps& unit) {
    constexpr int kSteps = Weigher<kStrips>::kSteps;
    Weigher<kStrips> weigher(tile_, state_, unit);
    TileSums sums;
    int32_t step = 0;
    for (; step < unit.num_steps; step += kSteps) {
      if (kSteps == 1 || step + 1 < unit.num_steps) {
        multiply_qk<kStrips, 4 / kStrips>(unit, step, sums, weigher);
      } else {
        multiply_qk<kStrips, 2>(unit, step, sums, weigher);
      }
      if (step > 0 && !weigher.finish_rows()) weigher.move_references();
    }
    add_values(unit, step - kSteps, sums, weigher);
  }

  // Stores the sums of the round before, and weighs them while it leaves its own in the registers.
  template <int kStrips, int kGroups>
  void multiply_qk(const StripSteps& unit, int32_t step, TileSums& sums,
                   Weigher<kStrips>& weigher) {
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
    for (int i = 0; i < Block::kSums; ++i) sums.to[i] = weigher.logits_of(step) + i * kSumTile;
    int32_t dim = 0;
    if (dims < 32) {
      before.store();
      Block::clear();
    } else {
      Block::template start<true>(before, sums, operands(0));
      dim = 32;
    }
    if (step > 0) weigher.begin(step - Weigher<kStrips>::kSteps);
    // So many that the 32 rows and the products end together.
    if (dims <= 96) {
      add_all<kStrips, kGroups, 4>(operands, dim, weigher);
    } else {
      add_all<kStrips, kGroups, 2>(operands, dim, weigher);
    }
    if constexpr (kStrips == 1) {
      if (half_depth()) Block::add_half(operands(dims / 32 * 32));
    }
  }

  template <int kStrips, int kGroups, int kRows, class Operands>
  [[gnu::always_inline]] inline void add_all(const Operands& operands, int32_t first_dim,
                                             Weigher<kStrips>& weigher) const {
    for (int32_t dim = first_dim; dim + 32 <= state_.head_dim; dim += 32) {
      TileBlock<kStrips, kGroups>::add(
          operands(dim), [&]() __attribute__((always_inline)) {
            weigher.template weigh_rows<kRows>();
          });
    }
  }

  // The logits from `last_step` on are in the registers still, and not weighed.
  template <int kStrips>
  void add_values(const StripSteps& unit, int32_t last_step, TileSums& sums,
                  Weigher<kStrips>& weigher) {
    const bool finite =
        unit.block == nullptr ||
        all_finite<Avx512>(tile_, reinterpret_cast<const uint16_t*>(unit.block->v), unit.tokens());
    const bool weighed_beside = last_step > 0 && finite;
    if (!weighed_beside) {
      sums.store();
      sums = TileSums();
      weigher.begin(last_step);
      if (!weigher.finish_rows()) weigher.move_references();
    }
    RowSums row_sums(state_, unit, kStrips);
    if (finite) {
      multiply_groups(unit, weighed_beside ? last_step : 0, sums, weigher, row_sums);
    } else {
      for (int32_t strip = 0; strip < kStrips; ++strip) add_values_row_by_row(unit, strip);
    }
    row_sums.finish();
  }

  template <int kStrips>
  void multiply_groups(const StripSteps& unit, int32_t weigh_until, TileSums& sums,
                       Weigher<kStrips>& weigher, RowSums& row_sums) {
    constexpr int kGroups = 4 / kStrips;
    const int32_t groups = state_.head_dim / kKvLanes;
    for (int32_t group = 0; group < groups; group += kGroups) {
      const auto multiply = [&]<int kWidth>() {
        multiply_v<kStrips, kWidth>(unit, group, group == 0 ? weigh_until : 0, sums, weigher,
                                    row_sums);
      };
      if constexpr (kStrips == 2) {
        multiply.template operator()<2>();
      } else {
        switch (smaller(kGroups, groups - group)) {
          case 1:
            multiply.template operator()<1>();
            break;
          case 2:
            multiply.template operator()<2>();
            break;
          case 3:
            multiply.template operator()<3>();
            break;
          default:
            multiply.template operator()<4>();
        }
      }
    }
    sums.store();
  }

  // Stores the sums of the round before, and leaves its own in the registers. Beside its steps up
  // to `weigh_until` the last logits are weighed, which the steps from there on take; beside the
  // others weights are summed up.
  template <int kStrips, int kGroups>
  void multiply_v(const StripSteps& unit, int32_t group, int32_t weigh_until, TileSums& sums,
                  Weigher<kStrips>& weigher, RowSums& row_sums) {
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
      return {{state_.weights_of(0, step), state_.weights_of(1, step)},
              {v, v + kGroup, v + 2 * kGroup, v + 3 * kGroup}};
    };
    Block::template start<false>(before, sums, operands(0));
    int32_t step = 1;
    if (weigh_until > 0) {
      weigher.begin(weigh_until);
      for (; step < weigh_until; ++step) {
        Block::add(
            operands(step), [&]() __attribute__((always_inline)) {
              weigher.template weigh_rows<4>();
            });
      }
      if (!weigher.finish_rows()) {
        sums.store();
        weigher.move_references();
        sums.load();
      }
    }
    for (; step < unit.num_steps; ++step) {
      Block::add(
          operands(step), [&]() __attribute__((always_inline)) { row_sums.add_two(); });
    }
  }

  // A weight of zero does not hide an infinity or NaN of an unseen token: each row gets V without
  // those.
  void add_values_row_by_row(const StripSteps& unit, int32_t strip) {
    const auto* v = reinterpret_cast<const uint16_t*>(unit.block->v);
    const int32_t first_row = (unit.first_strip + strip) * kStripRows;
    for (int32_t i = 0; i < state_.rows_of(unit.first_strip + strip); ++i) {
      const TokenRange seen = seen_by(tile_, *unit.block, first_row + i);
      for (int32_t dim = 0; dim < state_.head_dim; dim += kKvLanes) {
        copy_seen(v_group(v, dim), 1, seen, state_.masked_v);
        const uint16_t* right = state_.masked_v + int64_t{unit.first_token} * kKvLanes;
        float* acc = state_.acc + int64_t{first_row} * state_.head_dim + dim;
        tile_load<0>(acc, int64_t{state_.head_dim} * 4);
        for (int32_t step = 0; step < unit.num_steps; ++step) {
          TileBlock<1, 1>::add({{state_.weights_of(strip, step)}, {right + step * kOperandTile}},
                               [] {});
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

void visit(const AttentionTile& tile, const AttentionBlock* blocks, int32_t num_blocks) {
  if (!takes_tiles(tile)) return FloatAttention::visit(tile, blocks, num_blocks);
  TileAttention(tile).visit(blocks, num_blocks);
}

void visit_steps(const AttentionTile& tile, const AttentionStep* steps, int32_t num_steps) {
  if (!takes_tiles(tile)) return FloatAttention::visit_steps(tile, steps, num_steps);
  TileAttention(tile).visit_steps(steps, num_steps);
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

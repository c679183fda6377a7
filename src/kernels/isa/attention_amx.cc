// Attention with bf16 products on AMX tiles, K and V straight from the page. An f16 cache takes the
// f32 products of AVX-512.
//
// Tiles and vector units work at the same time only on what stands within some 500 instructions of
// each other. So the rows whose logits are there wait in a queue, and a few of them become weights
// after every step of a product (weave); V is added for one unit of rows while the logits of the
// next are made. A visit leaves its last unit for the next visit, or for state() and finish(). None
// of this shows in a row's bits: its logits, weights and sums are made in the same order.
#include "kernels/generic/attention.inl.h"
#include "kernels/generic/attention_store.inl.h"
#include "kernels/isa/attention_pipeline.h"
#include "kernels/isa/attention_tiles.h"
#include "kernels/isa/attention_weights.h"
#include "kernels/isa/bf16_avx512.h"

namespace winnow {
namespace {

// A new reference stands above the largest logit by so much, so that it seldom moves again: the
// accumulator is scaled only where a later logit comes out at twice the reference's weight.
constexpr float kHeadroom = 7;

void TileAttention::begin() {
  const int32_t dims = tile_.head_dim;
  // The logits come out in units of log2, or as the argument of the cap's tanh.
  const float scale = tile_.soft_cap > 0 ? tile_.scale / tile_.soft_cap : tile_.scale * kLog2E;
  const int32_t room = state_.strips * kStripRows;
  for (int32_t i = 0; i < room * dims / 2; i += 16) {
    _mm512_store_si512(reinterpret_cast<uint32_t*>(state_.q) + i, _mm512_setzero_si512());
  }
  for (int32_t row = 0; row < state_.rows; ++row) {
    const float* q = tile_.q + row_offset(tile_, row);
    uint16_t* strip = state_.q + int64_t{row / kStripRows} * kStripRows * dims;
    for (int32_t dim = 0; dim < dims; dim += 32) {
      const int32_t width = smaller(32, dims - dim);
      Bf16Operands::pack(q + dim, width, scale,
                         strip + dim * kStripRows + row % kStripRows * width);
    }
  }
  for (int32_t row = 0; row < room; ++row) {
    // The rows that a strip lacks have logits of zero, which need no attention.
    state_.max[row] = row < state_.rows ? kNoLogit : 0;
    state_.sum[row] = 0;
  }
  for (int32_t i = 0; i < room * dims; i += 16) {
    _mm512_store_ps(state_.acc + i, _mm512_setzero_ps());
  }
  for (int32_t row = 0; row < room; ++row) {
    _mm512_store_ps(state_.lane_sums + int64_t{row} * 16, _mm512_setzero_ps());
  }
  line_ = Pipeline{};
  expect({{state_.nowhere, state_.nowhere, state_.nowhere, state_.nowhere}, kRowBytes});
  set_origins();
}

void TileAttention::set_origins() {
  for (int32_t row = 0; row < state_.strips * kStripRows; row += 16) {
    _mm512_store_ps(state_.origin + row, Bf16Weights::origin_of(_mm512_load_ps(state_.max + row)));
  }
}

void TileAttention::sum_lanes() {
  for (int32_t row = 0; row < state_.rows; ++row) {
    state_.sum[row] = _mm512_reduce_add_ps(_mm512_load_ps(state_.lane_sums + int64_t{row} * 16));
  }
}

AttentionState TileAttention::hand_out() {
  if (line_.handed_out) take_back();
  drain();
  sum_lanes();
  line_.handed_out = true;
  return {state_.max, state_.sum, state_.acc};
}

// Takes over what was changed. A row that was only looked at keeps its lanes, and so its bits.
void TileAttention::take_back() {
  for (int32_t row = 0; row < state_.rows; ++row) {
    float* lanes = state_.lane_sums + int64_t{row} * 16;
    if (_mm512_reduce_add_ps(_mm512_load_ps(lanes)) == state_.sum[row]) continue;
    _mm512_store_ps(lanes, _mm512_setzero_ps());
    lanes[0] = state_.sum[row];
  }
  set_origins();
  line_.handed_out = false;
}

void TileAttention::finish() {
  drain();
  if (!line_.handed_out) sum_lanes();
  for (int32_t row = 0; row < state_.rows; ++row) {
    const __m512 inverse = _mm512_set1_ps(1 / state_.sum[row]);
    const float* acc = state_.acc + int64_t{row} * tile_.head_dim;
    float* out = tile_.out + row_offset(tile_, row);
    for (int32_t i = 0; i < tile_.head_dim; i += 16) {
      // Adding zero makes a negative zero positive: which of the two it is depends on unseen keys.
      const __m512 sum = _mm512_add_ps(_mm512_load_ps(acc + i), _mm512_setzero_ps());
      _mm512_storeu_ps(out + i, _mm512_mul_ps(sum, inverse));
    }
  }
}

void TileAttention::visit(const AttentionStep* steps, int32_t num_steps,
                          const AttentionBlock* block) {
  if (line_.handed_out) take_back();
  if (!line_.configured) tile_configure(half_depth() ? kHalfDepthTiles : kFullTiles);
  line_.configured = true;
  for (int32_t strip = 0; strip < state_.strips; strip += max_strips()) {
    Unit& before = line_.units[line_.newest];
    Unit& unit = line_.units[1 - line_.newest];
    for (int32_t i = 0; i < num_steps; ++i) unit.steps[i] = steps[i];
    unit.num_steps = num_steps;
    if (!set_unit(unit, strip, block)) continue;
    line_.newest = 1 - line_.newest;
    run(unit, before);
  }
}

// Returns whether its rows see any token.
bool TileAttention::set_unit(Unit& unit, int32_t first_strip, const AttentionBlock* block) {
  unit.first_strip = first_strip;
  unit.num_strips = smaller(max_strips(), state_.strips - first_strip);
  unit.values_done = 0;
  unit.weights = state_.weights + (1 - line_.newest) * 2 * kStripWeights;
  unit.first_step = 0;
  unit.masked = false;
  if (block == nullptr) return true;
  const int32_t first = first_strip * kStripRows;
  const int32_t last = smaller(state_.rows, first + unit.num_strips * kStripRows) - 1;
  const TokenRange seen = seen_by_any(tile_, *block, first, last);
  if (seen.empty()) {
    unit.num_steps = 0;
    return false;
  }
  const TokenRange steps = seen.in_steps();
  unit.first_step = steps.begin / kStepTokens;
  unit.num_steps = (steps.end - steps.begin) / kStepTokens;
  unit.masked = !seen_by(tile_, *block, first).contains(steps) ||
                !seen_by(tile_, *block, last).contains(steps);
  if (unit.masked) unit.block = *block;
  return true;
}

// Makes the unit's logits, and meanwhile adds V for the unit before it.
void TileAttention::run(Unit& unit, Unit& before) {
  const int32_t blocks = unit.num_blocks();
  const int32_t values = before.num_value_blocks(state_.head_dim);
  const int32_t steps = blocks * divide_up(state_.head_dim, 32) + values * before.num_steps;
  // The sums of a row cost as much as its weights for two steps.
  const int32_t rows = kStripRows * (2 * blocks + 2 * unit.num_strips);
  line_.rate = 16 * rows / steps + 1;
  for (int32_t block = 0; block < blocks; ++block) {
    make_logits(unit, block);
    add_values(before, values * (block + 1) / blocks);
  }
}

// Leaves nothing waiting.
void TileAttention::drain() {
  if (!line_.configured) return;
  Unit& newest = line_.units[line_.newest];
  add_values(newest, newest.num_value_blocks(state_.head_dim));
  finish_pieces(line_.num_pieces);
  store_tiles();
  tile_release();
  line_.configured = false;
}

// What the tile registers are to hold from now on.
void TileAttention::expect(const TileSums& sums) {
  line_.unstored = sums;
  line_.num_pieces += line_.num_unstored;
  line_.num_unstored = 0;
}

void TileAttention::store_tiles() {
  line_.unstored.store();
  float* nowhere = state_.nowhere;
  expect({{nowhere, nowhere, nowhere, nowhere}, kRowBytes});
}

void TileAttention::make_logits(Unit& unit, int32_t block_idx) {
  while (line_.num_blocks == kLogitBlocks) finish_pieces(1);
  float* to = state_.logits + line_.next_block * 4 * kSumTile;
  const TileSums sums{{to, to + kSumTile, to + 2 * kSumTile, to + 3 * kSumTile}, kRowBytes};
  line_.next_block = (line_.next_block + 1) % kLogitBlocks;
  line_.num_blocks += 1;
  const auto add_piece = [&](int32_t strip, int32_t step, float* logits, bool ends_block) {
    const int32_t place = line_.first_piece + line_.num_pieces + line_.num_unstored++;
    line_.pieces[place % kMaxPieces] = {&unit,
                                        unit.first_strip + strip,
                                        step,
                                        logits,
                                        unit.weights + strip * kStripWeights + step * kStepWeights,
                                        unit.num_steps,
                                        ends_block};
  };
  if (unit.num_strips == 2) {
    const int32_t step = unit.first_step + block_idx;
    multiply_qk<2, 2>(unit, step, sums);
    add_piece(0, step, to, false);
    add_piece(1, step, to + 2 * kSumTile, true);
  } else {
    const int32_t step = unit.first_step + 2 * block_idx;
    if (step + 1 < unit.end_step()) {
      multiply_qk<1, 4>(unit, step, sums);
    } else {
      multiply_qk<1, 2>(unit, step, sums);
    }
    const bool two_steps = step + 1 < unit.end_step();
    add_piece(0, step, to, !two_steps);
    if (two_steps) add_piece(0, step + 1, to + 2 * kSumTile, true);
  }
  if (block_idx + 1 < unit.num_blocks()) return;
  add_piece(0, unit.first_step, nullptr, false);
  if (unit.num_strips == 2) add_piece(1, unit.first_step, nullptr, false);
}

template <int kStrips, int kGroups>
void TileAttention::multiply_qk(const Unit& unit, int32_t step, const TileSums& sums) {
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
  int32_t dim = 0;
  if (half_depth()) {
    store_tiles();
    Block::clear();
  } else {
    Block::template start<true>(line_.unstored, sums, operands(0));
    dim = 32;
  }
  expect(sums);
  if (dim > 0) weave();
  for (; dim + 32 <= dims; dim += 32) {
    Block::add(operands(dim));
    weave();
  }
  if constexpr (kStrips == 1) {
    if (dim < dims) Block::add_half(operands(dim));
  }
}

// The share of the waiting rows for which one step of a product has time.
void TileAttention::weave() {
  line_.credit += line_.rate;
  const int32_t rows = line_.credit / 16 / 4 * 4;
  if (rows == 0) return;
  line_.credit -= rows * 16;
  if (line_.num_pieces > 0 && !line_.stopped) weigh_rows(rows);
}

// Up to `rows` rows of the first piece.
void TileAttention::weigh_rows(int32_t rows) {
  const Piece piece = line_.pieces[line_.first_piece];
  if (piece.logits == nullptr) {
    const int32_t begin = line_.next_row;
    line_.next_row = smaller(state_.strip_rows(piece.strip), begin + rows / 2);
    add_sums(piece, begin, line_.next_row);
    if (line_.next_row == state_.strip_rows(piece.strip)) pop_piece();
    return;
  }
  if (line_.next_row == 0) {
    line_.large = _mm512_setzero_si512();
    if (piece.unit->masked || tile_.soft_cap > 0) prepare_logits(piece);
  }
  const int32_t end = state_.strip_rows(piece.strip);
  const float* origin = state_.origin + piece.strip * kStripRows;
  const int32_t stop = smaller(end, line_.next_row + rows);
  __m512i large = line_.large;
  const auto weigh = [&](int32_t i) {
    const float* logits = piece.logits + i * 16;
    const __m512i weights =
        Bf16Weights::of(logits, logits + kSumTile, _mm512_set1_ps(origin[i]), large);
    _mm512_store_si512(piece.weights + i * kStepTokens, weights);
  };
  int32_t row = line_.next_row;
  for (; row + 4 <= stop; row += 4) {
    weigh(row);
    weigh(row + 1);
    weigh(row + 2);
    weigh(row + 3);
  }
  for (; row < stop; ++row) weigh(row);
  line_.large = large;
  line_.next_row = stop;
  if (stop < end) return;
  if (_mm512_movepi16_mask(large) != 0) {
    line_.stopped = true;
  } else {
    pop_piece();
  }
}

void TileAttention::pop_piece() {
  if (line_.pieces[line_.first_piece].ends_block) line_.num_blocks -= 1;
  line_.first_piece = (line_.first_piece + 1) % kMaxPieces;
  line_.num_pieces -= 1;
  line_.num_finished += 1;
  line_.next_row = 0;
}

// The first `count`. Not between the steps of a product: tiles hold its sums.
void TileAttention::finish_pieces(int32_t count) {
  const int32_t end = line_.num_finished + count;
  while (line_.num_finished != end) {
    if (!line_.stopped) weigh_rows(kStripRows);
    if (!line_.stopped) continue;
    const Piece& piece = line_.pieces[line_.first_piece];
    // What the row has so far is scaled as a whole.
    Unit& before = line_.units[1 - line_.newest];
    if (piece.unit != &before) add_values(before, before.num_value_blocks(state_.head_dim));
    move_references(piece);
    line_.stopped = false;
    pop_piece();
  }
}

// Those with logits, and those before them.
void TileAttention::finish_pieces_of(const Unit& unit) {
  const auto* next = &line_.pieces[(line_.first_piece + line_.num_pieces) % kMaxPieces];
  if (line_.num_unstored > 0 && next->unit == &unit) store_tiles();
  int32_t count = 0;
  for (int32_t i = 0; i < line_.num_pieces; ++i) {
    const Piece& piece = line_.pieces[(line_.first_piece + i) % kMaxPieces];
    if (piece.unit == &unit && piece.logits != nullptr) count = i + 1;
  }
  finish_pieces(count);
}

// Caps the logits and hides those of unseen tokens.
void TileAttention::prepare_logits(const Piece& piece) {
  const bool masked = piece.unit->masked;
  for (int32_t i = 0; i < state_.strip_rows(piece.strip); ++i) {
    TokenRange seen{0, kStepTokens};
    if (masked) {
      const int32_t token = piece.step * kStepTokens;
      seen = seen_by(tile_, piece.unit->block, piece.strip * kStripRows + i);
      seen = {seen.begin - token, seen.end - token};
    }
    for (int32_t half = 0; half < 2; ++half) {
      float* at = piece.logits + half * kSumTile + i * 16;
      __m512 logit = _mm512_load_ps(at);
      if (tile_.soft_cap > 0) {
        logit = _mm512_mul_ps(tanh<Avx512>(logit), _mm512_set1_ps(tile_.soft_cap * kLog2E));
      }
      const auto lanes = Avx512::lanes_between(seen.begin - half * 16, seen.end - half * 16);
      _mm512_store_ps(at, Avx512::select(lanes, logit, _mm512_set1_ps(kNoLogit)));
    }
  }
}

// For the rows of a piece whose reference is too low, or that have none.
void TileAttention::move_references(const Piece& piece) {
  store_tiles();
  for (int32_t i = 0; i < state_.strip_rows(piece.strip); ++i) {
    const float* logits = piece.logits + i * 16;
    const __m512 origin = _mm512_set1_ps(state_.origin[piece.strip * kStripRows + i]);
    __m512i large = _mm512_setzero_si512();
    Bf16Weights::of(logits, logits + kSumTile, origin, large);
    if (_mm512_movepi16_mask(large) != 0) move_reference(piece, i);
  }
}

void TileAttention::move_reference(const Piece& piece, int32_t row_in_strip) {
  const int32_t row = piece.strip * kStripRows + row_in_strip;
  float* max = state_.max + row;
  const float* logits = piece.logits + row_in_strip * 16;
  const __m512 low = _mm512_load_ps(logits);
  const __m512 high = _mm512_load_ps(logits + kSumTile);
  // In this order NaN is passed over; its weight is NaN anyway.
  const float largest =
      _mm512_reduce_max_ps(_mm512_max_ps(high, _mm512_max_ps(low, _mm512_set1_ps(*max))));
  if (largest > *max) {
    const float reference = __builtin_ceilf(largest) + kHeadroom;
    scale_row(piece, row, Avx512::first(exp2_weight<Avx512>(_mm512_set1_ps(*max - reference))));
    *max = reference;
    state_.origin[row] = Avx512::first(Bf16Weights::origin_of(_mm512_set1_ps(reference)));
  }
  uint16_t* weights = piece.weights + row_in_strip * kStepTokens;
  if (state_.origin[row] < __builtin_inff()) {
    __m512i large = _mm512_setzero_si512();
    _mm512_store_si512(weights, Bf16Weights::of(logits, logits + kSumTile,
                                                _mm512_set1_ps(state_.origin[row]), large));
    return;
  }
  // Infinite or huge references, or none yet.
  const __m512 reference = _mm512_set1_ps(*max == kNoLogit ? 0 : *max);
  Bf16Operands::store_weights(reinterpret_cast<float*>(weights), 0,
                              exp2_weight<Avx512>(_mm512_sub_ps(low, reference)));
  Bf16Operands::store_weights(reinterpret_cast<float*>(weights), 16,
                              exp2_weight<Avx512>(_mm512_sub_ps(high, reference)));
}

// What the row has so far, and its weights of this visit before `piece`.
void TileAttention::scale_row(const Piece& piece, int32_t row, float factor) {
  const __m512 factors = _mm512_set1_ps(factor);
  const auto scale = [&](float* at) {
    _mm512_store_ps(at, _mm512_mul_ps(_mm512_load_ps(at), factors));
  };
  for (int32_t dim = 0; dim < state_.head_dim; dim += 16) {
    scale(state_.acc + int64_t{row} * state_.head_dim + dim);
  }
  scale(state_.lane_sums + int64_t{row} * 16);
  for (int32_t step = piece.unit->first_step; step < piece.step; ++step) {
    uint16_t* weights =
        piece.weights - (piece.step - step) * kStepWeights + row % kStripRows * kStepTokens;
    for (int32_t i = 0; i < kStepTokens; i += 16) {
      const __m256i halves = _mm256_load_si256(reinterpret_cast<const __m256i*>(weights + i));
      const __m512 values =
          _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
      Bf16Operands::store_weights(reinterpret_cast<float*>(weights), i,
                                  _mm512_mul_ps(values, factors));
    }
  }
}

void TileAttention::add_sums(const Piece& piece, int32_t begin, int32_t end) {
  const auto ones = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f803f80));
  const int32_t num_steps = piece.num_steps;
  float* lanes = state_.lane_sums + int64_t{piece.strip} * kStripRows * 16;
  for (int32_t i = begin; i < end; ++i) {
    const uint16_t* weights = piece.weights + i * kStepTokens;
    __m512 sum = _mm512_load_ps(lanes + i * 16);
    for (int32_t step = 0; step < num_steps; ++step) {
      const __m512i bits = _mm512_load_si512(weights + step * kStepWeights);
      sum = _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(bits), ones);
    }
    _mm512_store_ps(lanes + i * 16, sum);
  }
}

// Sums up to block `end`.
void TileAttention::add_values(Unit& unit, int32_t end) {
  if (unit.values_done >= end) return;
  if (unit.values_done == 0) finish_pieces_of(unit);
  int32_t block = unit.values_done;
  unit.values_done = end;
  if (unit.masked) {
    const auto* v = reinterpret_cast<const uint16_t*>(unit.block.v);
    const TokenRange tokens{unit.first_step * kStepTokens, unit.end_step() * kStepTokens};
    if (!all_finite<Avx512>(tile_, v, tokens)) {
      if (block == 0) add_values_row_by_row(unit);
      return;
    }
  }
  const int32_t groups = state_.head_dim / kKvLanes;
  for (; block < end; ++block) {
    if (unit.num_strips == 2) {
      multiply_v<2, 2>(unit, 2 * block);
      continue;
    }
    switch (smaller(4, groups - 4 * block)) {
      case 1:
        multiply_v<1, 1>(unit, 4 * block);
        break;
      case 2:
        multiply_v<1, 2>(unit, 4 * block);
        break;
      case 3:
        multiply_v<1, 3>(unit, 4 * block);
        break;
      default:
        multiply_v<1, 4>(unit, 4 * block);
    }
  }
}

template <int kStrips, int kGroups>
void TileAttention::multiply_v(const Unit& unit, int32_t group) {
  using Block = TileBlock<kStrips, kGroups>;
  const int32_t dims = state_.head_dim;
  const int64_t strip = int64_t{kStripRows} * dims;
  float* acc = state_.acc + unit.first_strip * strip + group * kKvLanes;
  TileSums sums{{}, int64_t{dims} * 4};
  for (int i = 0; i < 4; ++i) {
    sums.to[i] =
        i < Block::kSums ? acc + i / kGroups * strip + i % kGroups * kKvLanes : state_.nowhere;
  }
  const auto operands = [&](int32_t step) -> TileOperands {
    const AttentionStep& from = unit.steps[step];
    const uint16_t* v = v_group(reinterpret_cast<const uint16_t*>(from.v), group * kKvLanes) +
                        int64_t{from.token} * kKvLanes;
    const uint16_t* weights = unit.weights + step * kStepWeights;
    constexpr int64_t kGroup = int64_t{2} * kVGroupUnits;
    return {{weights, weights + kStripWeights}, {v, v + kGroup, v + 2 * kGroup, v + 3 * kGroup}};
  };
  Block::template start<false>(line_.unstored, sums, operands(unit.first_step));
  expect(sums);
  weave();
  for (int32_t step = unit.first_step + 1; step < unit.end_step(); ++step) {
    Block::add(operands(step));
    weave();
  }
}

// A weight of zero does not hide an infinity or NaN of an unseen token: each row gets V without
// those.
void TileAttention::add_values_row_by_row(const Unit& unit) {
  store_tiles();
  const auto* v = reinterpret_cast<const uint16_t*>(unit.block.v);
  for (int32_t strip = unit.first_strip; strip < unit.first_strip + unit.num_strips; ++strip) {
    const uint16_t* weights = unit.weights + (strip - unit.first_strip) * kStripWeights;
    for (int32_t i = 0; i < state_.strip_rows(strip); ++i) {
      const TokenRange seen = seen_by(tile_, unit.block, strip * kStripRows + i);
      for (int32_t dim = 0; dim < state_.head_dim; dim += kKvLanes) {
        copy_seen(v_group(v, dim), 1, seen, state_.masked_v);
        float* acc = state_.acc + int64_t{strip} * kStripRows * state_.head_dim + dim;
        tile_load<0>(acc, int64_t{state_.head_dim} * 4);
        for (int32_t step = unit.first_step; step < unit.end_step(); ++step) {
          TileBlock<1, 1>::add(
              {{weights + step * kStepWeights}, {state_.masked_v + step * kOperandTile}});
        }
        tile_store<0>(state_.masked_sums, kRowBytes);
        _mm512_store_ps(acc + int64_t{i} * state_.head_dim,
                        _mm512_load_ps(state_.masked_sums + i * 16));
      }
    }
  }
}

struct Level : Avx512 {
  static constexpr int kStripRows = 12;
  static constexpr int kPairedRows = 12;
};

using FloatAttention = Attention<Level, VectorProducts<Level, FloatDot<Level>>>;

bool takes_tiles(const AttentionTile& tile) { return tile.dtype == KvDType::kBf16; }

int64_t scratch_bytes(int32_t rows, int32_t head_dim) {
  const int64_t tiles = TileRows(nullptr, rows, head_dim).bytes;
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
  return takes_tiles(tile) ? TileAttention(tile).hand_out() : FloatAttention::state(tile);
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

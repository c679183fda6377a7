// What an attention tile on AMX keeps in its scratch, and what of it waits between two visits: rows
// whose logits are there but not their weights, and V of the unit visited last. For isa/ files
// only.
#pragma once

#include "kernels/isa/attention_tiles.h"
#include "kernels/isa/simd_avx512.h"

namespace winnow {
namespace {

// 16-bit weights of one strip and step, and of one strip.
constexpr int kStepWeights = kStripRows * kStepTokens;
constexpr int kStripWeights = kMaxSteps * kStepWeights;

// One or two strips and the steps of which their rows see any.
struct Unit {
  AttentionStep steps[kMaxSteps];
  AttentionBlock block;  // whose steps they are, where `masked`
  bool masked;           // some row does not see all of them
  int32_t first_strip;
  int32_t num_strips;
  int32_t first_step;
  int32_t num_steps;
  int32_t values_done;  // blocks of sums
  uint16_t* weights;

  // Of logits: two strips and one step, or one strip and two steps.
  int32_t num_blocks() const { return num_strips == 2 ? num_steps : divide_up(num_steps, 2); }
  // Of sums.
  int32_t num_value_blocks(int32_t head_dim) const {
    return num_steps == 0 ? 0 : divide_up(head_dim, (num_strips == 2 ? 2 : 4) * kKvLanes);
  }
  int32_t end_step() const { return first_step + num_steps; }
};

// The 16 x 32 logits of a strip and a step, in two tiles; or, without logits, the sums of a strip's
// weights.
struct Piece {
  Unit* unit;
  int32_t strip;
  int32_t step;
  float* logits;
  uint16_t* weights;
  int32_t num_steps;  // of the unit: it may be another by the time its sums are made
  bool ends_block;
};

// Blocks of logits that may wait, and pieces: those of the blocks, and a unit's sums.
constexpr int kLogitBlocks = 3;
constexpr int kMaxPieces = 4 * kLogitBlocks + 4;

// What waits between two visits.
struct alignas(64) Pipeline {
  __m512i large;      // of the first piece's rows so far
  TileSums unstored;  // what the tile registers hold
  Unit units[2];      // the newest and the one before
  int32_t newest;
  Piece pieces[kMaxPieces];  // a ring; the last ones wait for the tile registers to be stored
  int32_t first_piece;
  int32_t num_pieces;
  int32_t num_finished;
  int32_t num_unstored;
  int32_t num_blocks;  // of logits
  int32_t next_row;    // of the first piece
  int32_t next_block;  // of logits
  int32_t credit;      // rows that the products have not yet made time for, in 16ths
  int32_t rate;        // per step of a product
  bool stopped;        // the first piece waits for move_references()
  bool configured;     // the tile registers
  bool handed_out;     // state() was called since the last visit
};

// The tile's scratch. Arrays start on cache lines, and rows come in whole strips.
struct TileRows {
  TileRows(std::byte* scratch, int32_t num_rows, int32_t dims)
      : rows(num_rows), strips(divide_up(num_rows, kStripRows)), head_dim(dims) {
    const int64_t room = int64_t{strips} * kStripRows;
    int64_t used = 0;
    const auto take = [&](int64_t floats) {
      float* start = scratch == nullptr ? nullptr : reinterpret_cast<float*>(scratch) + used;
      used += (floats + 15) / 16 * 16;
      return start;
    };
    max = take(room);
    sum = take(room);
    origin = take(room);
    acc = take(room * dims);
    lane_sums = take(room * 16);
    q = reinterpret_cast<uint16_t*>(take(room * dims / 2));
    logits = take(int64_t{kLogitBlocks} * 4 * kSumTile);
    weights = reinterpret_cast<uint16_t*>(take(2 * kStripWeights));
    masked_v = reinterpret_cast<uint16_t*>(take(int64_t{2} * kVGroupUnits));
    masked_sums = take(kSumTile);
    nowhere = take(int64_t{kStripRows} * dims);
    pipeline = reinterpret_cast<Pipeline*>(take(sizeof(Pipeline) / sizeof(float)));
    bytes = used * static_cast<int64_t>(sizeof(float));
  }

  int32_t strip_rows(int32_t strip) const { return smaller(kStripRows, rows - strip * kStripRows); }

  int32_t rows;
  int32_t strips;
  int32_t head_dim;
  float* max;          // [rows]: the references of the weights, whole numbers
  float* sum;          // [rows], up to date in state() and finish()
  float* origin;       // [rows]: Bf16Weights::origin_of(max)
  float* acc;          // [rows][head_dim]
  float* lane_sums;    // [rows][16]: their sum is the row's
  uint16_t* q;         // [strip][head_dim / 32][16 rows][32 dims], and what is left of head_dim
  float* logits;       // [kLogitBlocks][4 tiles][16 rows][16 tokens]
  uint16_t* weights;   // [2 units][2 strips][step][16 rows][32 tokens] bf16
  uint16_t* masked_v;  // V of two groups of dims as one row may see it
  float* masked_sums;  // [16][16]
  float* nowhere;      // for a tile that is not needed
  Pipeline* pipeline;
  int64_t bytes;
};

// A tile of rows over its scratch; attention_amx.cc.
class TileAttention {
 public:
  explicit TileAttention(const AttentionTile& tile)
      : tile_(tile),
        state_(tile.scratch, tile.queries * tile.group, tile.head_dim),
        line_(*state_.pipeline) {}

  void begin();
  void visit(const AttentionStep* steps, int32_t num_steps, const AttentionBlock* block);
  AttentionState hand_out();
  void finish();

 private:
  static constexpr float kLog2E = 1.4426950408889634F;

  bool half_depth() const { return state_.head_dim % 32 != 0; }
  int32_t max_strips() const { return half_depth() ? 1 : 2; }
  void take_back();
  void sum_lanes();
  void set_origins();
  bool set_unit(Unit& unit, int32_t first_strip, const AttentionBlock* block);

  void run(Unit& unit, Unit& before);
  void drain();
  void store_tiles();
  void expect(const TileSums& sums);
  void make_logits(Unit& unit, int32_t block_idx);
  template <int kStrips, int kGroups>
  void multiply_qk(const Unit& unit, int32_t step, const TileSums& sums);

  void weave();
  void weigh_rows(int32_t rows);
  void prepare_logits(const Piece& piece);
  void finish_pieces(int32_t count);
  void finish_pieces_of(const Unit& unit);
  void pop_piece();
  void move_references(const Piece& piece);
  void move_reference(const Piece& piece, int32_t row);
  void scale_row(const Piece& piece, int32_t row, float factor);

  void add_sums(const Piece& piece, int32_t begin, int32_t end);
  void add_values(Unit& unit, int32_t end);
  template <int kStrips, int kGroups>
  void multiply_v(const Unit& unit, int32_t group);
  void add_values_row_by_row(const Unit& unit);

  const AttentionTile& tile_;
  const TileRows state_;
  Pipeline& line_;
};

}  // namespace
}  // namespace winnow

// The two matrix products of attention on AMX tiles. A block is what four tiles of sums take: two
// strips of 16 rows by two groups of 16 tokens or dims, which share their loads, or one strip by
// four. Four chains in flight hide the 52 cycles of a dot product. For isa/ files only.
#pragma once

#include "kernels/generic/attention_state.inl.h"
#include "kernels/isa/amx_tiles.h"

namespace winnow {
namespace {

constexpr int kStripRows = 16;
// Floats of a tile of sums, and 16-bit numbers of a tile of operands.
constexpr int kSumTile = 256;
constexpr int kOperandTile = 512;
constexpr int kRowBytes = 64;

// Tile registers. A head_dim of an odd number of 16s ends in a product of half the depth; only
// blocks of one strip have registers for its operands.
constexpr int kLeft0 = 4, kLeft1 = 5, kRight0 = 6, kRight1 = 7;
constexpr int kHalfLeft = 5, kHalfRight = 7;

constexpr TileConfig kHalfDepthTiles = [] {
  TileConfig config;
  config.bytes_per_row[kHalfLeft] = 32;
  config.rows[kHalfRight] = 8;
  return config;
}();

// Where the tiles of sums of a block go, and where those that do not start at zero come from; row
// r of sum i at to[i] + r * stride_bytes. Unused ones are null.
struct TileSums {
  float* to[4] = {};
  int64_t stride_bytes = 0;

  template <int kSum>
  [[gnu::always_inline]] inline void store_one() const {
    if (to[kSum] != nullptr) tile_store<kSum>(to[kSum], stride_bytes);
  }
  void store() const {
    store_one<0>();
    store_one<1>();
    store_one<2>();
    store_one<3>();
  }

  template <int kSum>
  [[gnu::always_inline]] inline void load_one() const {
    if (to[kSum] != nullptr) tile_load<kSum>(to[kSum], stride_bytes);
  }
  void load() const {
    load_one<0>();
    load_one<1>();
    load_one<2>();
    load_one<3>();
  }
};

// Operands of one step of 32: a left one for each strip, a right one for each group.
struct TileOperands {
  const uint16_t* left[2];
  const uint16_t* right[4];
};

// Strips of a block by groups of 16 side by side; sum s * kGroups + g. between() runs after each
// product: the vector units' work costs half there of what it costs between blocks. K and V are
// read past the first-level cache, which is full of what every step needs (docs/kernels.md).
template <int kStrips, int kGroups>
struct TileBlock {
  static_assert(kStrips * kGroups <= 4 && (kStrips == 1 || kGroups == 2));
  static constexpr int kSums = kStrips * kGroups;

  // The first step. A sum of the block before is stored when its register is needed, while the
  // other three still multiply: storing four at once would stop the tiles for as long as four dot
  // products take.
  template <bool kFromZero>
  [[gnu::always_inline]] static inline void start(const TileSums& before, const TileSums& sums,
                                                  const TileOperands& from) {
    step(
        from,
        [&]<int kSum>() {
          before.template store_one<kSum>();
          if constexpr (kFromZero) {
            tile_zero<kSum>();
          } else {
            sums.template load_one<kSum>();
          }
        },
        [] {});
    if constexpr (kSums < 2) before.template store_one<1>();
    if constexpr (kSums < 3) before.template store_one<2>();
    if constexpr (kSums < 4) before.template store_one<3>();
  }
  template <class Between>
  [[gnu::always_inline]] static inline void add(const TileOperands& from, Between between) {
    step(
        from, []<int kSum>() {}, between);
  }

  static void clear() {
    tile_zero<0>();
    tile_zero<1>();
    tile_zero<2>();
    tile_zero<3>();
  }
  // 16 deep.
  static void add_half(const TileOperands& from) {
    static_assert(kStrips == 1);
    tile_load<kHalfLeft>(from.left[0], kRowBytes / 2);
    const auto nothing = []<int kSum>() {};
    const auto none = [] {};
    add_group<0, kHalfLeft, kHalfRight>(from, nothing, none);
    add_group<1, kHalfLeft, kHalfRight>(from, nothing, none);
    add_group<2, kHalfLeft, kHalfRight>(from, nothing, none);
    add_group<3, kHalfLeft, kHalfRight>(from, nothing, none);
  }

 private:
  // prepare<sum>() runs before the sum's product.
  template <class Prepare, class Between>
  [[gnu::always_inline]] static inline void step(const TileOperands& from, Prepare prepare,
                                                 Between between) {
    tile_load<kLeft0>(from.left[0], kRowBytes);
    add_group<0, kLeft0, kRight0>(from, prepare, between);
    if constexpr (kStrips == 2) {
      add_group<1, kLeft0, kRight1>(from, prepare, between);
      tile_load<kLeft1>(from.left[1], kRowBytes);
      prepare.template operator()<2>();
      tile_dot_bf16<2, kLeft1, kRight0>();
      between();
      prepare.template operator()<3>();
      tile_dot_bf16<3, kLeft1, kRight1>();
      between();
    } else {
      add_group<1, kLeft0, kRight0>(from, prepare, between);
      add_group<2, kLeft0, kRight0>(from, prepare, between);
      add_group<3, kLeft0, kRight0>(from, prepare, between);
    }
  }
  template <int kGroup, int kLeft, int kRight, class Prepare, class Between>
  [[gnu::always_inline]] static inline void add_group(const TileOperands& from, Prepare prepare,
                                                      Between between) {
    if constexpr (kGroup < kGroups) {
      tile_load_once<kRight>(from.right[kGroup], kRowBytes);
      prepare.template operator()<kGroup>();
      tile_dot_bf16<kGroup, kLeft, kRight>();
      between();
    }
  }
};

}  // namespace
}  // namespace winnow

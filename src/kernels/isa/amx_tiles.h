// AMX tile instructions with the register as a template argument. Unlike GCC 12's intrinsics they
// take named constants, and they tell the compiler that loads read memory.
#pragma once

#include "kernels/isa/tile_config.h"

namespace winnow {
namespace {

// Gives the tile registers these shapes and zeroes them; tile_release() gives them back.
inline void tile_configure(const TileConfig& config) { asm volatile("ldtilecfg %0" ::"m"(config)); }
inline void tile_release() { asm volatile("tilerelease"); }

template <int kTile>
inline void tile_zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}

// Rows of a tile lie `stride` bytes apart.
template <int kTile>
inline void tile_load(const void* base, long stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(base), "r"(stride), "i"(kTile) : "memory");
}

// The same for what passes by once: it takes no room in the first-level cache from what is kept.
template <int kTile>
inline void tile_load_once(const void* base, long stride) {
  asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" ::"r"(base), "r"(stride), "i"(kTile) : "memory");
}

template <int kTile>
inline void tile_store(void* base, long stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(base), "r"(stride), "i"(kTile) : "memory");
}

// sums += left * right over bf16 pairs, accumulated in f32.
template <int kSums, int kLeft, int kRight>
inline void tile_dot_bf16() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kLeft), "i"(kRight));
}

}  // namespace
}  // namespace winnow

// In place of src/kernels/isa/amx_tiles.h: the same functions over tile registers in memory. What
// the hardware answers with a fault stops the program here.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "kernels/isa/tile_config.h"

namespace winnow {
namespace {

struct TileRegisters {
  static constexpr int kCount = 8, kRows = 16, kRowBytes = 64;

  bool configured = false;
  TileConfig config;
  uint8_t bytes[kCount][kRows][kRowBytes];

  int rows(int tile) const { return config.rows[tile]; }
  int row_bytes(int tile) const { return config.bytes_per_row[tile]; }
};

inline TileRegisters& tile_registers() {
  static thread_local TileRegisters registers;
  return registers;
}
inline TileRegisters& configured_tile_registers() {
  TileRegisters& registers = tile_registers();
  if (!registers.configured) std::abort();
  return registers;
}

inline void tile_configure(const TileConfig& config) {
  TileRegisters& registers = tile_registers();
  if (config.palette != 1 || config.start_row != 0) std::abort();
  for (int tile = 0; tile < TileRegisters::kCount; ++tile) {
    if (config.rows[tile] > TileRegisters::kRows) std::abort();
    if (config.bytes_per_row[tile] > TileRegisters::kRowBytes) std::abort();
  }
  registers.config = config;
  registers.configured = true;
  std::memset(registers.bytes, 0, sizeof(registers.bytes));
}
inline void tile_release() { tile_registers().configured = false; }

template <int kTile>
inline void tile_zero() {
  std::memset(configured_tile_registers().bytes[kTile], 0, sizeof(TileRegisters::bytes[kTile]));
}

template <int kTile>
inline void tile_load(const void* base, long stride) {
  TileRegisters& registers = configured_tile_registers();
  tile_zero<kTile>();
  for (int row = 0; row < registers.rows(kTile); ++row) {
    std::memcpy(registers.bytes[kTile][row], static_cast<const char*>(base) + row * stride,
                static_cast<size_t>(registers.row_bytes(kTile)));
  }
}

template <int kTile>
inline void tile_load_once(const void* base, long stride) {
  tile_load<kTile>(base, stride);
}

template <int kTile>
inline void tile_store(void* base, long stride) {
  const TileRegisters& registers = configured_tile_registers();
  for (int row = 0; row < registers.rows(kTile); ++row) {
    std::memcpy(static_cast<char*>(base) + row * stride, registers.bytes[kTile][row],
                static_cast<size_t>(registers.row_bytes(kTile)));
  }
}

// Even and odd columns in a sum of their own, then both onto the tile.
[[gnu::noinline]] inline void tile_dot_row(const uint8_t* left, int pairs,
                                           const uint8_t (*right)[TileRegisters::kRowBytes],
                                           int outputs, uint8_t* sums) {
  uint16_t a[32], b[32];
  float even[16] = {}, odd[16] = {}, c[16];
  std::memcpy(a, left, sizeof(a));
  std::memcpy(c, sums, sizeof(c));
  for (int pair = 0; pair < pairs; ++pair) {
    std::memcpy(b, right[pair], sizeof(b));
    for (int i = 0; i < outputs; ++i) {
      even[i] = add_bf16_product(a[2 * pair], b[2 * i], even[i]);
      odd[i] = add_bf16_product(a[2 * pair + 1], b[2 * i + 1], odd[i]);
    }
  }
  for (int i = 0; i < outputs; ++i) {
    c[i] = flush_subnormal(flush_subnormal(c[i]) + flush_subnormal(even[i] + odd[i]));
  }
  std::memcpy(sums, c, sizeof(c));
}

template <int kSums, int kLeft, int kRight>
inline void tile_dot_bf16() {
  static_assert(kSums != kLeft && kSums != kRight && kLeft != kRight);
  TileRegisters& registers = configured_tile_registers();
  const int rows = registers.rows(kSums), pairs = registers.rows(kRight);
  const bool shapes_fit = registers.rows(kLeft) == rows &&
                          registers.row_bytes(kRight) == registers.row_bytes(kSums) &&
                          registers.row_bytes(kLeft) == 4 * pairs;
  if (!shapes_fit) std::abort();
  for (int row = 0; row < rows; ++row) {
    tile_dot_row(registers.bytes[kLeft][row], pairs, registers.bytes[kRight],
                 registers.row_bytes(kSums) / 4, registers.bytes[kSums][row]);
  }
}

}  // namespace
}  // namespace winnow

// The shapes of the eight tile registers, as LDTILECFG reads them.
#pragma once

#include <cstdint>

namespace winnow {
namespace {

// Full tiles (16 rows of 64 bytes) unless told otherwise.
struct TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);
constexpr TileConfig kFullTiles;

}  // namespace
}  // namespace winnow

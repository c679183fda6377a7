#include "kernels/isa/amx_tiles.h"
#include "kernels/peak_loops.h"

namespace winnow {
namespace {

// Bytes that make ordinary numbers in bf16 (.5 to 2, of either sign) and in int8.
struct TileBytes {
  constexpr TileBytes() {
    uint32_t state = 1;
    for (uint16_t& number : numbers) {
      state = state * 1664525 + 1013904223;
      number = static_cast<uint16_t>(0x3f00 | (state >> 16 & 0x80ff));
    }
  }
  uint16_t numbers[512] = {};
};
alignas(64) constexpr TileBytes kBytes;

// A product of tiles that are zero, or were never loaded, runs at the full clock, and on a core
// whose other hardware thread keeps the tile unit busy twice as fast as any that is worth
// computing.
void load_factors() {
  tile_configure(kFullTiles);
  tile_load<4>(kBytes.numbers, 64);
  tile_load<5>(kBytes.numbers, 64);
  tile_load<6>(kBytes.numbers, 64);
  tile_load<7>(kBytes.numbers, 64);
}

// Two left tiles times two right ones: the shape that a product from registers has.
void bf16_loop(int64_t rounds) {
  load_factors();
  for (int64_t i = 0; i < rounds; ++i) {
    tile_dot_bf16<0, 4, 6>(), tile_dot_bf16<1, 4, 7>();
    tile_dot_bf16<2, 5, 6>(), tile_dot_bf16<3, 5, 7>();
  }
  tile_release();
}

void int8_loop(int64_t rounds) {
  load_factors();
  for (int64_t i = 0; i < rounds; ++i) {
    asm volatile(
        "tdpbssd %tmm6, %tmm4, %tmm0\n\ttdpbssd %tmm7, %tmm4, %tmm1\n\t"
        "tdpbssd %tmm6, %tmm5, %tmm2\n\ttdpbssd %tmm7, %tmm5, %tmm3");
  }
  tile_release();
}

constexpr int64_t kTiles = 4;
constexpr PeakLoop kLoops[] = {{"bf16", kTiles * 16 * 16 * 32, bf16_loop},
                               {"int8", kTiles * 16 * 16 * 64, int8_loop},
                               {nullptr, 0, nullptr}};

}  // namespace

const PeakLoop* peak_loops_amx() { return kLoops; }

}  // namespace winnow

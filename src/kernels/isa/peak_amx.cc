#include "kernels/isa/amx_tiles.h"
#include "kernels/peak_loops.h"

namespace winnow {
namespace {

// Two left tiles times two right ones: the shape that a product from registers has.
void bf16_loop(int64_t rounds) {
  tile_configure(kFullTiles);
  for (int64_t i = 0; i < rounds; ++i) {
    tile_dot_bf16<0, 4, 6>(), tile_dot_bf16<1, 4, 7>();
    tile_dot_bf16<2, 5, 6>(), tile_dot_bf16<3, 5, 7>();
  }
  tile_release();
}

void int8_loop(int64_t rounds) {
  tile_configure(kFullTiles);
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

// Block scores on NEON with the dot product: four numbers of a key's sketch in every lane.
#include "kernels/generic/blocks.inl.h"
#include "kernels/isa/simd_neon.h"

namespace winnow {
namespace {

struct Sketches {
  static constexpr int kVecs = 4;

  static void pack(const float* coordinates, int32_t rank, std::byte* packed, int32_t* offsets) {
    auto* numbers = reinterpret_cast<int8_t*>(packed);
    for (int32_t i = 0; i < rank; ++i) {
      for (int32_t row = 0; row < kScoreRows; ++row) {
        numbers[i / 4 * 4 * kScoreRows + row * 4 + i % 4] =
            static_cast<int8_t>(coordinates[i * kScoreRows + row]);
      }
    }
    for (int32_t row = 0; row < kScoreRows; ++row) offsets[row] = 0;
  }

  static void peaks(const ScoreState& state, int32_t rank, const uint8_t* keys, int32_t tokens,
                    float32x4_t* out) {
    const auto* q = reinterpret_cast<const int8_t*>(state.sketches);
    int32x4_t largest[kVecs];
    for (int32x4_t& lanes : largest) lanes = vdupq_n_s32(-0x7fffffff);
    for (int32_t token = 0; token < tokens; token += 2) {
      int32x4_t products[2][kVecs];
      for (auto& product : products) {
        for (int32x4_t& lanes : product) lanes = vdupq_n_s32(0);
      }
      for (int32_t i = 0; i < rank; i += 4) {
        const int8x16_t key0 = four_of(keys + token * rank + i);
        const int8x16_t key1 = four_of(keys + (token + 1) * rank + i);
        for (int v = 0; v < kVecs; ++v) {
          const int8x16_t rows = vld1q_s8(q + i * kScoreRows + v * 16);
          products[0][v] = vdotq_s32(products[0][v], rows, key0);
          products[1][v] = vdotq_s32(products[1][v], rows, key1);
        }
      }
      for (const auto& product : products) {
        for (int v = 0; v < kVecs; ++v) largest[v] = vmaxq_s32(largest[v], product[v]);
      }
    }
    for (int v = 0; v < kVecs; ++v) out[v] = vcvtq_f32_s32(largest[v]);
  }

 private:
  // As signed numbers: the sign bit of a number plus 128 is turned.
  static int8x16_t four_of(const uint8_t* key) {
    uint32_t bits;
    __builtin_memcpy(&bits, key, sizeof(bits));
    return vreinterpretq_s8_u32(vdupq_n_u32(bits ^ 0x80808080U));
  }
};

constexpr BlockKernels kKernels = block_kernels_of<Neon, Sketches>();

}  // namespace

const BlockKernels& block_kernels_neon() { return kKernels; }

}  // namespace winnow

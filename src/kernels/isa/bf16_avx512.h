// bf16 operands of attention's products, for the levels with AVX512-BF16. For isa/ files only.
#pragma once

#include <cstdint>

#include "kernels/isa/simd_avx512.h"

namespace winnow {
namespace {

struct Bf16Operands {
  // row * scale, rounded to nearest even, in `dims` 16-bit numbers. Requires dims % 16 == 0.
  static void pack(const float* row, int32_t dims, float scale, uint16_t* to) {
    for (int32_t dim = 0; dim < dims; dim += Avx512::kLanes) {
      store(to + dim, _mm512_mul_ps(_mm512_loadu_ps(row + dim), _mm512_set1_ps(scale)));
    }
  }
  static void store(uint16_t* to, __m512 v) {
    // Unlike the conversion of AVX512-BF16 this one keeps subnormal numbers.
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(Avx512::to_bf16(v)));
  }
  // Weights lie where their logits were, in half the room: token t at 2 t bytes. Written in
  // ascending order they never overtake the logits still to be read.
  static void store_weights(float* row, int32_t token, __m512 weights) {
    const auto halves = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(weights));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(reinterpret_cast<uint16_t*>(row) + token),
                        halves);
  }
};

}  // namespace
}  // namespace winnow

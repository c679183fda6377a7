// Row-wise operations between the matrix products; each row in a fixed order of its own.
#pragma once

#include <cstdint>

namespace winnow {

enum class Activation { kSilu, kGeluTanh };

// Plain pointers, so that isa/ files need nothing else. All counts are in floats; rows are dense.
struct ElementwiseKernels {
  // y[r] = x[r] / sqrt(mean(x[r]^2) + eps) * weight. y may be x.
  // Accumulates in f32 (documented error).
  void (*rms_norm)(const float* x, const float* weight, float eps, int64_t rows, int64_t width,
                   float* y);
  // Rotates dim pairs (i, i + rotary_dims / 2) of each head in place.
  // x: [rows, heads, head_dim]; cos_sin: [rows, rotary_dims], cosines then sines of
  // rotary_dims / 2 angles.
  void (*rope)(float* x, const float* cos_sin, int64_t rows, int64_t heads, int64_t head_dim,
               int64_t rotary_dims);
  // out[i] = activation(gate[i]) * up[i]. out may be gate or up.
  void (*gated_activation)(Activation kind, const float* gate, const float* up, int64_t count,
                           float* out);
  // y[i] += x[i].
  void (*add)(const float* x, int64_t count, float* y);
  // x[i] = cap * tanh(x[i] / cap).
  void (*soft_cap)(float* x, int64_t count, float cap);
};

const ElementwiseKernels& elementwise_kernels_scalar();
const ElementwiseKernels& elementwise_kernels_avx2();
const ElementwiseKernels& elementwise_kernels_avx512();
const ElementwiseKernels& elementwise_kernels_neon();

}  // namespace winnow

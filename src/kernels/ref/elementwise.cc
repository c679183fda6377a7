// The specification of the elementwise kernels: plain loops, sums in double.
#include "kernels/elementwise.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace winnow {
namespace {

void rms_norm(const float* x, const float* weight, float eps, int64_t rows, int64_t width,
              float* y) {
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x + row * width;
    float* out = y + row * width;
    double squares = 0;
    for (int64_t i = 0; i < width; ++i) squares += double{in[i]} * in[i];
    const double mean = squares / static_cast<double>(width);
    const auto factor = static_cast<float>(1 / std::sqrt(mean + eps));
    for (int64_t i = 0; i < width; ++i) out[i] = in[i] * factor * weight[i];
  }
}

void rope(float* x, const float* cos_sin, int64_t rows, int64_t heads, int64_t head_dim,
          int64_t rotary_dims) {
  const int64_t half = rotary_dims / 2;
  for (int64_t row = 0; row < rows; ++row) {
    const float* cosines = cos_sin + row * rotary_dims;
    const float* sines = cosines + half;
    for (int64_t head = 0; head < heads; ++head) {
      float* first = x + (row * heads + head) * head_dim;
      float* second = first + half;
      for (int64_t i = 0; i < half; ++i) {
        const float a = first[i];
        const float b = second[i];
        first[i] = a * cosines[i] - b * sines[i];
        second[i] = a * sines[i] + b * cosines[i];
      }
    }
  }
}

// x * sigmoid(x), and x * sigmoid(2u) = x * (1 + tanh(u)) / 2. Where the sigmoid is below 1e-38, x
// is held so that no infinity meets a zero; a comparison with NaN is false, so NaN passes through.
double silu(double x) {
  const double held = x < -100 ? -100 : x;
  return held / (1 + std::exp(-held));
}

double gelu_tanh(double x) {
  const double held = x < -30 ? -30 : x;
  const double u =
      std::numbers::sqrt2 * std::numbers::inv_sqrtpi * (held + 0.044715 * held * held * held);
  return held / (1 + std::exp(-2 * u));
}

void gated_activation(Activation kind, const float* gate, const float* up, int64_t count,
                      float* out) {
  for (int64_t i = 0; i < count; ++i) {
    const double activated = kind == Activation::kSilu ? silu(gate[i]) : gelu_tanh(gate[i]);
    out[i] = static_cast<float>(activated) * up[i];
  }
}

void add(const float* x, int64_t count, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] += x[i];
}

void soft_cap(float* x, int64_t count, float cap) {
  for (int64_t i = 0; i < count; ++i) x[i] = cap * std::tanh(x[i] / cap);
}

constexpr ElementwiseKernels kKernels = {rms_norm, rope, gated_activation, add, soft_cap};

}  // namespace

const ElementwiseKernels& elementwise_kernels_scalar() { return kKernels; }

}  // namespace winnow

#include "kernels/elementwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "support/each_isa.h"
#include "support/f32_limits.h"
#include "support/guarded_buffer.h"
#include "support/same_bits.h"

namespace winnow {
namespace {

using test::expect_same_bits;

class ElementwiseOnEachIsa : public EachIsa {
 protected:
  const ElementwiseKernels& ops() const { return *kernels().elementwise; }
};
INSTANTIATE_TEST_SUITE_P(Isa, ElementwiseOnEachIsa, all_isas(), isa_test_name);

constexpr int kWidths[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 64, 576, 896, 1001};

void fill_normal(GuardedBuffer<float>& values, uint32_t seed, float deviation = 1) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0, deviation);
  for (float& value : values.span()) value = normal(rng);
}

// The NaN of both sides must stand at the same places before magnitudes are compared.
void expect_near(float got, double want, double bound) {
  ASSERT_EQ(std::isnan(got), std::isnan(want)) << got << " and " << want;
  if (std::isnan(want) || got == want) return;
  ASSERT_NEAR(got, want, bound);
}

TEST_P(ElementwiseOnEachIsa, RmsNormDividesByTheRootMeanSquare) {
  for (const int width : kWidths) {
    const int rows = 3;
    SCOPED_TRACE(width);
    GuardedBuffer<float> x(static_cast<size_t>(rows * width)), y(x.size());
    GuardedBuffer<float> weight(static_cast<size_t>(width));
    fill_normal(x, 1, 3);
    fill_normal(weight, 2);
    ops().rms_norm(x.data(), weight.data(), 1e-5F, rows, width, y.data());
    for (int row = 0; row < rows; ++row) {
      double squares = 0;
      for (int i = 0; i < width; ++i) squares += std::pow(double{x[row * width + i]}, 2);
      const double factor = 1 / std::sqrt(squares / width + 1e-5F);
      for (int i = 0; i < width; ++i) {
        const double want = x[row * width + i] * factor * weight[i];
        // Half the relative error of a sum of `width` terms, and the roundings after it.
        expect_near(y[row * width + i], want, std::abs(want) * kEpsilon * (width / 2.0 + 8));
      }
    }
  }
}

// From public reports, values by numpy in float64: a sum of squares beyond half precision, and
// weights that hold Gemma's 1 already.
TEST_P(ElementwiseOnEachIsa, RmsNormOfALargeValueStaysExact) {
  const float x[] = {30000, 1, 1, 1}, weight[] = {1.5F, 0, 1, 3};
  const double want[] = {2.999999995, 0, 6.6667e-05, 0.0002};
  float y[4];
  ops().rms_norm(x, weight, 1e-6F, 1, 4, y);
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(y[i], want[i], 1e-5 * want[i] + 1e-12);
}

// From public reports: a product beyond half precision.
TEST_P(ElementwiseOnEachIsa, AGatedActivationBeyondHalfPrecisionIsFinite) {
  const float gate = 300, up = 400;
  float y = 0;
  ops().gated_activation(Activation::kSilu, &gate, &up, 1, &y);
  EXPECT_NEAR(y, 120000, 1);
}

// From public reports, values by numpy in float64: a Qwen key's bias is added before it is rotated.
TEST_P(ElementwiseOnEachIsa, AKeyWithItsBiasIsRotatedHalfAgainstHalf) {
  float key[] = {1 + 100, 2 - 50, -1 + 30, 0.5F};
  const float small = 3 / 100.0F;  // position 3, base 10,000
  const float cos_sin[] = {std::cos(3.0F), std::cos(small), std::sin(3.0F), std::sin(small)};
  ops().rope(key, cos_sin, 1, 1, 4, 4);
  const double want[] = {-104.081722, -47.993399, -14.456662, -0.940009};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(key[i], want[i], 2e-5);
}

TEST_P(ElementwiseOnEachIsa, ARowOfRmsNormIsTheSameAloneAndInPlace) {
  const int rows = 5, width = 577;
  GuardedBuffer<float> x(rows * width), y(rows * width), weight(width), alone(width);
  fill_normal(x, 3);
  fill_normal(weight, 4);
  ops().rms_norm(x.data(), weight.data(), 1e-6F, rows, width, y.data());
  for (int row = 0; row < rows; ++row) {
    std::copy_n(x.data() + row * width, width, alone.data());
    ops().rms_norm(alone.data(), weight.data(), 1e-6F, 1, width, alone.data());
    for (int i = 0; i < width; ++i) expect_same_bits(alone[i], y[row * width + i]);
  }
}

TEST_P(ElementwiseOnEachIsa, RopeRotatesHalfSplitPairsAndLeavesTheRest) {
  for (const int rotary_dims : {2, 6, 16, 34, 64}) {
    SCOPED_TRACE(rotary_dims);
    const int rows = 3, heads = 2, head_dim = 64, half = rotary_dims / 2;
    GuardedBuffer<float> x(rows * heads * head_dim),
        cos_sin(static_cast<size_t>(rows * rotary_dims));
    fill_normal(x, 5);
    for (int row = 0; row < rows; ++row) {
      for (int i = 0; i < half; ++i) {
        cos_sin[row * rotary_dims + i] = std::cos(static_cast<float>(row + i));
        cos_sin[row * rotary_dims + half + i] = std::sin(static_cast<float>(row + i));
      }
    }
    const std::vector<float> before(x.data(), x.data() + x.size());
    ops().rope(x.data(), cos_sin.data(), rows, heads, head_dim, rotary_dims);
    for (int row = 0; row < rows; ++row) {
      for (int head = 0; head < heads; ++head) {
        const int offset = (row * heads + head) * head_dim;
        for (int i = 0; i < half; ++i) {
          const double a = before[offset + i], b = before[offset + half + i];
          const double c = cos_sin[row * rotary_dims + i],
                       s = cos_sin[row * rotary_dims + half + i];
          const double bound = (std::abs(a) + std::abs(b)) * 3 * kEpsilon;
          expect_near(x[offset + i], a * c - b * s, bound);
          expect_near(x[offset + half + i], a * s + b * c, bound);
        }
        for (int i = rotary_dims; i < head_dim; ++i)
          expect_same_bits(x[offset + i], before[offset + i]);
      }
    }
  }
}

std::vector<float> awkward_numbers() {
  std::vector<float> values = {0.0F,    -0.0F,    1e-40F,    -1e-30F,    88.0F, -88.0F, 89.0F,
                               -89.0F,  -103.0F,  -104.5F,   -1e4F,      1e4F,  -1e30F, 1e30F,
                               3.4e38F, -3.4e38F, kInfinity, -kInfinity, NAN,   -9.5F,  -5.0F};
  for (int i = -4000; i <= 4000; ++i) values.push_back(static_cast<float>(i) * 0.01F);
  return values;
}

double exact_activation(Activation kind, double x) {
  if (x == -kInfinity) return 0;
  if (kind == Activation::kSilu) return x / (1 + std::exp(-x));
  const double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  return x / (1 + std::exp(-2 * u));
}

TEST_P(ElementwiseOnEachIsa, ActivationsAreRightForAnyInput) {
  const std::vector<float> values = awkward_numbers();
  GuardedBuffer<float> gate(values.size()), up(values.size()), out(values.size());
  std::copy(values.begin(), values.end(), gate.data());
  std::fill_n(up.data(), up.size(), 1.0F);
  for (const Activation kind : {Activation::kSilu, Activation::kGeluTanh}) {
    ops().gated_activation(kind, gate.data(), up.data(), std::ssize(values), out.data());
    for (size_t i = 0; i < values.size(); ++i) {
      SCOPED_TRACE(values[i]);
      const double want = exact_activation(kind, values[i]);
      // The exponent's own rounding grows with it: relative error |2u| * epsilon.
      const double exponent = kind == Activation::kSilu ? 100 : 200;
      const double argument = std::min(
          exponent, std::abs(std::pow(double{values[i]}, kind == Activation::kSilu ? 1 : 3)) +
                        4 * std::abs(values[i]));
      expect_near(out[i], want, std::abs(want) * (1e-6 + 4 * argument * kEpsilon) + 2e-36);
    }
  }
}

TEST_P(ElementwiseOnEachIsa, AGatedActivationMayOverwriteItsInputs) {
  for (const int count : kWidths) {
    GuardedBuffer<float> gate(static_cast<size_t>(count)), up(gate.size()), out(gate.size()),
        same(gate.size());
    fill_normal(gate, 6, 3);
    fill_normal(up, 7);
    ops().gated_activation(Activation::kSilu, gate.data(), up.data(), count, out.data());
    for (int i = 0; i < count; ++i) {
      float one = 0;
      ops().gated_activation(Activation::kSilu, &gate[i], &up[i], 1, &one);
      expect_same_bits(out[i], one);
      expect_near(out[i], exact_activation(Activation::kSilu, gate[i]) * up[i],
                  2e-6 * std::abs(out[i]));
    }
    std::copy_n(gate.data(), count, same.data());
    ops().gated_activation(Activation::kSilu, same.data(), up.data(), count, same.data());
    for (int i = 0; i < count; ++i) expect_same_bits(same[i], out[i]);
    ops().gated_activation(Activation::kSilu, gate.data(), up.data(), count, up.data());
    for (int i = 0; i < count; ++i) expect_same_bits(up[i], out[i]);
  }
}

TEST_P(ElementwiseOnEachIsa, AddAddsEveryElementOnce) {
  for (const int count : kWidths) {
    GuardedBuffer<float> x(static_cast<size_t>(count)), y(x.size());
    fill_normal(x, 8);
    fill_normal(y, 9);
    const std::vector<float> before(y.data(), y.data() + y.size());
    ops().add(x.data(), count, y.data());
    for (int i = 0; i < count; ++i) expect_same_bits(y[i], before[static_cast<size_t>(i)] + x[i]);
  }
}

TEST_P(ElementwiseOnEachIsa, SoftCapIsCapTimesTanh) {
  const std::vector<float> values = awkward_numbers();
  for (const float cap : {1.0F, 30.0F, 50.0F}) {
    GuardedBuffer<float> x(values.size());
    std::copy(values.begin(), values.end(), x.data());
    ops().soft_cap(x.data(), std::ssize(values), cap);
    for (size_t i = 0; i < values.size(); ++i) {
      SCOPED_TRACE(values[i]);
      expect_near(x[i], cap * std::tanh(double{values[i]} / cap), cap * 5e-7);
    }
  }
}

}  // namespace
}  // namespace winnow

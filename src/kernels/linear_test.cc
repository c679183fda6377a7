#include "kernels/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/linear_kernels.h"
#include "kernels/ref/weight_groups.h"
#include "support/each_isa.h"
#include "support/guarded_buffer.h"
#include "support/random_weight.h"
#include "tensor/qformats.h"

namespace winnow {
namespace {

constexpr Phase kPhases[] = {Phase::kPrompt, Phase::kGenerate};

std::string phase_name(Phase phase) { return phase == Phase::kPrompt ? "prompt" : "generate"; }

// A weight and its input, all ending at a guard page.
struct Problem {
  Problem(DType dtype, int64_t num_rows, int64_t outputs, int64_t cols, uint32_t seed)
      : weight_bytes(static_cast<size_t>(dtype_bytes(dtype, cols) * outputs)),
        x(static_cast<size_t>(num_rows * cols)),
        bias(static_cast<size_t>(outputs)),
        weight{dtype, outputs, cols, weight_bytes.data()},
        rows(num_rows) {
    std::mt19937 rng(seed);
    std::normal_distribution<float> normal;
    fill_random_weight(dtype, weight_bytes.span(), rng);
    for (float& value : x.span()) value = normal(rng);
    for (float& value : bias.span()) value = normal(rng);
  }

  LinearInput input() const { return {x.data(), rows, weight.cols, weight.cols}; }

  GuardedBuffer<std::byte> weight_bytes;
  GuardedBuffer<float> x;
  GuardedBuffer<float> bias;
  WeightView weight;
  int64_t rows;
};

std::vector<float> multiply(const KernelTable& kernels, Phase phase, const LinearInput& input,
                            const WeightView& weight, const float* bias, ThreadPool& pool) {
  GuardedBuffer<float> y(static_cast<size_t>(input.num_rows * weight.rows));
  for (float& value : y.span()) value = NAN;
  LinearScratch scratch;
  const LinearOutput output{weight, bias, y.data(), weight.rows};
  linear(kernels, phase, input, std::span(&output, 1), pool, scratch);
  return {y.data(), y.data() + y.size()};
}

std::vector<float> multiply(const KernelTable& kernels, Phase phase, const Problem& problem) {
  ThreadPool pool(1);
  return multiply(kernels, phase, problem.input(), problem.weight, problem.bias.data(), pool);
}

// The sum of the magnitudes that pass through a row's f32 sums: with the codes at their largest
// offset from zero.
double magnitude(const Problem& problem, int64_t row, int64_t output) {
  const float* x = problem.x.data() + row * problem.weight.cols;
  double sum = std::fabs(problem.bias[static_cast<size_t>(output)]);
  if (!is_quantized(problem.weight.dtype)) {
    std::vector<float> weights(static_cast<size_t>(problem.weight.cols));
    dequantize(problem.weight.dtype, problem.weight.row(output), problem.weight.cols,
               weights.data());
    for (size_t i = 0; i < weights.size(); ++i) sum += std::fabs(weights[i] * x[i]);
    return sum;
  }
  for (int64_t g = 0; g < problem.weight.cols / kInputGroup; ++g) {
    const ref::WeightGroup group =
        ref::read_weight_group(problem.weight.dtype, problem.weight.row(output), g);
    for (int i = 0; i < kInputGroup; ++i) {
      const int half = i / kHalfGroup;
      const double weight = std::fabs(double{group.d[half]}) * (std::abs(group.codes[i]) + 128) +
                            std::fabs(group.m[half]);
      sum += weight * (std::fabs(x[g * kInputGroup + i]) + 0.0002);
    }
  }
  return sum;
}

// Every term passes a few roundings of its own and one addition per group.
double rounding_bound(const Problem& problem, int64_t row, int64_t output) {
  const int64_t groups = problem.weight.cols / kInputGroup;
  const double roundings = is_quantized(problem.weight.dtype)
                               ? static_cast<double>(groups) + 16
                               : static_cast<double>(problem.weight.cols) + 8;
  return roundings * 0x1p-24 * magnitude(problem, row, output);
}

// Whether a level's products take weights and inputs as bf16.
bool rounds_to_bf16(Isa isa, Phase phase, DType dtype) {
  return isa == Isa::kAmx && phase == Phase::kPrompt && dtype != DType::kF32;
}

// What that does to a result: each factor of a product is off by up to 2^-8 of itself, both
// together by less than 2^-7 + 2^-15. The reference in turn rounds the input to int16: half a step
// of its group's scale, largest / 32767.
double bf16_bound(const Problem& problem, int64_t row, int64_t output) {
  const float* x = problem.x.data() + row * problem.weight.cols;
  std::vector<float> weights(static_cast<size_t>(problem.weight.cols));
  dequantize(problem.weight.dtype, problem.weight.row(output), problem.weight.cols, weights.data());
  double products = 0, input_rounding = 0, group_weights = 0, largest = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (i % kInputGroup == 0) group_weights = largest = 0;
    products += std::fabs(double{weights[i]} * x[i]);
    group_weights += std::fabs(weights[i]);
    largest = std::max<double>(largest, std::fabs(x[i]));
    if (i % kInputGroup == kInputGroup - 1) input_rounding += group_weights * largest / 65534;
  }
  if (!is_quantized(problem.weight.dtype)) input_rounding = 0;
  return products * (0x1p-7 + 0x1p-15) + input_rounding * (1 + 1e-5);
}

int64_t type_cols(DType dtype, int64_t cols) {
  const int64_t group = is_quantized(dtype) ? dtype_info(dtype).group_size : 1;
  return (cols + group - 1) / group * group;
}

void expect_near_reference(const KernelTable& kernels, Phase phase, const Problem& problem) {
  const std::vector<float> want = multiply(kernel_table(Isa::kScalar), phase, problem);
  const std::vector<float> got = multiply(kernels, phase, problem);
  for (int64_t row = 0; row < problem.rows; ++row) {
    for (int64_t output = 0; output < problem.weight.rows; ++output) {
      const auto at = static_cast<size_t>(row * problem.weight.rows + output);
      double bound = 2 * rounding_bound(problem, row, output);
      if (rounds_to_bf16(kernels.isa, phase, problem.weight.dtype)) {
        bound += bf16_bound(problem, row, output);
      }
      ASSERT_NEAR(got[at], want[at], bound)
          << phase_name(phase) << " " << dtype_info(problem.weight.dtype).name << " rows "
          << problem.rows << " outputs " << problem.weight.rows << " cols " << problem.weight.cols
          << " at " << row << ", " << output;
    }
  }
}

using LinearOnEachIsa = EachIsa;
INSTANTIATE_TEST_SUITE_P(Isa, LinearOnEachIsa, all_isas(), isa_test_name);

TEST(Linear, TheReferenceEqualsTheProductOfDequantizedWeightsUpToInputRounding) {
  for (const DType dtype : kAllDTypes) {
    const Problem problem(dtype, 3, 5, type_cols(dtype, 544), 1);
    const std::vector<float> got = multiply(kernel_table(Isa::kScalar), Phase::kPrompt, problem);
    std::vector<float> weights(static_cast<size_t>(problem.weight.cols));
    for (int64_t output = 0; output < problem.weight.rows; ++output) {
      dequantize(dtype, problem.weight.row(output), problem.weight.cols, weights.data());
      for (int64_t row = 0; row < problem.rows; ++row) {
        const float* x = problem.x.data() + row * problem.weight.cols;
        double want = problem.bias[static_cast<size_t>(output)], input_rounding = 0;
        for (int64_t first = 0; first < problem.weight.cols; first += kInputGroup) {
          double most = 0, weight_sum = 0;
          for (int64_t i = first; i < first + kInputGroup; ++i) {
            want += static_cast<double>(weights[static_cast<size_t>(i)]) * x[i];
            weight_sum += std::fabs(weights[static_cast<size_t>(i)]);
            most = std::max<double>(most, std::fabs(x[i]));
          }
          // Half a step of the int16 scale, most / 32767, for every column.
          if (is_quantized(dtype)) input_rounding += weight_sum * most / 65534 * (1 + 1e-5);
        }
        const auto at = static_cast<size_t>(row * problem.weight.rows + output);
        ASSERT_NEAR(got[at], want, input_rounding + rounding_bound(problem, row, output))
            << dtype_info(dtype).name << " at " << row << ", " << output;
      }
    }
  }
}

TEST_P(LinearOnEachIsa, EveryTypeMatchesTheReferenceAtAwkwardShapes) {
  constexpr int64_t kRows[] = {1, 2, 3, 4, 5, 15, 16, 17, 33};
  constexpr int64_t kOutputs[] = {1, 2, 15, 16, 17, 33};
  constexpr int64_t kCols[] = {32, 224, 256, 576, 1056};
  uint32_t seed = 1;
  for (const DType dtype : kAllDTypes) {
    for (const int64_t cols : kCols) {
      for (const Phase phase : kPhases) {
        const int64_t rows = kRows[seed % std::size(kRows)],
                      outputs = kOutputs[seed % std::size(kOutputs)];
        expect_near_reference(kernels(), phase,
                              Problem(dtype, rows, outputs, type_cols(dtype, cols), seed));
        ++seed;
      }
    }
  }
}

TEST_P(LinearOnEachIsa, EveryNumberOfRowsMatchesTheReference) {
  for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 33}) {
    for (const DType dtype : {DType::kF32, DType::kQ4_1, DType::kQ8_0, DType::kQ6_K}) {
      for (const Phase phase : kPhases)
        expect_near_reference(kernels(), phase, Problem(dtype, rows, 19, 256, 7));
    }
  }
}

TEST_P(LinearOnEachIsa, PlainWeightsTakeAnyNumberOfColumns) {
  for (const int64_t cols : {1, 2, 7, 8, 9, 17, 255, 257, 300}) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      for (const Phase phase : kPhases)
        expect_near_reference(kernels(), phase, Problem(dtype, 5, 18, cols, 3));
    }
  }
}

// Largest codes against largest inputs: any sum that wraps shows.
TEST_P(LinearOnEachIsa, ExtremeCodesDoNotSaturate) {
  for (const DType dtype : kAllDTypes) {
    for (const int fill : {0x00, 0x7f, 0x80, 0xff}) {
      for (const float sign : {1.0F, -1.0F}) {
        Problem problem(dtype, 5, 17, 512, 11);
        const auto group_bytes = static_cast<size_t>(dtype_info(dtype).group_bytes);
        std::vector<std::byte> original(problem.weight_bytes.data(),
                                        problem.weight_bytes.data() + problem.weight_bytes.size());
        for (size_t i = 0; i < problem.weight_bytes.size(); ++i)
          problem.weight_bytes[i] = static_cast<std::byte>(fill);
        for (size_t group = 0; group < problem.weight_bytes.size(); group += group_bytes) {
          const auto keep = [&](size_t at) {
            problem.weight_bytes[group + at] = original[group + at];
          };
          for (const int offset : half_offsets(dtype)) {
            keep(static_cast<size_t>(offset));
            keep(static_cast<size_t>(offset) + 1);
          }
          if (dtype == DType::kMXFP4) keep(0);
          for (size_t at = 0; !is_quantized(dtype) && at < group_bytes; ++at) keep(at);
        }
        for (float& value : problem.x.span()) value = sign;
        for (const Phase phase : kPhases) expect_near_reference(kernels(), phase, problem);
      }
    }
  }
}

TEST_P(LinearOnEachIsa, ARowHasTheSameBitsInAnyBatch) {
  ThreadPool one(1);
  for (const DType dtype : kAllDTypes) {
    const Problem problem(dtype, 37, 35, type_cols(dtype, 800), 5);
    for (const Phase phase : kPhases) {
      const std::vector<float> all = multiply(kernels(), phase, problem);
      for (const int64_t count : {1, 2, 3, 4, 7, 9, 16}) {
        for (int64_t row = 0; row + count <= problem.rows; row += count) {
          LinearInput input = problem.input();
          input.x += row * input.stride;
          input.num_rows = count;
          const std::vector<float> some =
              multiply(kernels(), phase, input, problem.weight, problem.bias.data(), one);
          ASSERT_EQ(std::memcmp(some.data(), all.data() + row * problem.weight.rows,
                                some.size() * sizeof(float)),
                    0)
              << phase_name(phase) << " " << dtype_info(dtype).name << " rows " << row << " + "
              << count;
        }
      }
    }
  }
}

// More rows, outputs and columns than any level unpacks or sums up at once.
TEST_P(LinearOnEachIsa, RowsOfLargeShapesHaveTheBitsThatTheyHaveAlone) {
  constexpr int64_t kRows = 530, kOutputs = 131;
  const Problem problem(DType::kQ8_0, kRows, kOutputs, 544, 5);
  for (const Phase phase : kPhases) {
    const std::vector<float> all = multiply(kernels(), phase, problem);
    ThreadPool one(1);
    for (const int64_t row : {0, 15, 31, 32, 511, 512, 529}) {
      LinearInput input = problem.input();
      input.x += row * input.stride;
      input.num_rows = 1;
      const std::vector<float> alone =
          multiply(kernels(), phase, input, problem.weight, problem.bias.data(), one);
      EXPECT_EQ(std::memcmp(alone.data(), all.data() + row * kOutputs, kOutputs * sizeof(float)), 0)
          << phase_name(phase) << " row " << row;
    }
  }
}

// Few rows, many rows, tiles that are not full, and more rows than are kept at once.
TEST_P(LinearOnEachIsa, GeneratedRowsAmongAnyNumberOfOthersHaveTheSameBits) {
  constexpr int64_t kMostRows = 70, kOutputs = 19;
  ThreadPool one(1);
  for (const DType dtype : {DType::kF16, DType::kQ4_1, DType::kQ5_0, DType::kQ8_0, DType::kQ2_K,
                            DType::kQ4_K, DType::kQ6_K, DType::kIQ4_NL, DType::kMXFP4}) {
    const Problem problem(dtype, kMostRows, kOutputs, type_cols(dtype, 352), 5);
    const auto rows = [&](int64_t first, int64_t count) {
      LinearInput input = problem.input();
      input.x += first * input.stride;
      input.num_rows = count;
      return multiply(kernels(), Phase::kGenerate, input, problem.weight, problem.bias.data(), one);
    };
    std::vector<float> alone;
    for (int64_t row = 0; row < kMostRows; ++row) {
      const std::vector<float> result = rows(row, 1);
      alone.insert(alone.end(), result.begin(), result.end());
    }
    for (const int64_t count : {2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 64, 65, 70}) {
      const std::vector<float> together = rows(0, count);
      ASSERT_EQ(std::memcmp(together.data(), alone.data(), together.size() * sizeof(float)), 0)
          << dtype_info(dtype).name << ", " << count << " rows";
    }
  }
}

TEST_P(LinearOnEachIsa, TheNumberOfThreadsDoesNotShow) {
  for (const DType dtype : {DType::kQ4_K, DType::kQ8_0, DType::kF16}) {
    const Problem problem(dtype, 20, 515, 512, 5);
    for (const Phase phase : kPhases) {
      const std::vector<float> alone = multiply(kernels(), phase, problem);
      for (const int threads : {2, 3}) {
        ThreadPool pool(threads);
        EXPECT_EQ(
            multiply(kernels(), phase, problem.input(), problem.weight, problem.bias.data(), pool),
            alone);
      }
    }
  }
}

TEST_P(LinearOnEachIsa, QuantizesLikeTheReference) {
  constexpr int64_t kRows = 3, kCols = 96;
  std::mt19937 rng(2);
  std::normal_distribution<float> normal;
  GuardedBuffer<float> x(kRows * kCols);
  for (float& value : x.span()) value = normal(rng);
  x[5] = 0.5F;  // a tie once the group's largest is 32767
  x[6] = 32767.0F;
  for (size_t i = 32; i < 64; ++i) x[i] = 0;
  for (size_t i = 64; i < 96; ++i) x[i] = 1e-38F;
  x[100] = NAN;
  x[130] = INFINITY;
  x[170] = -INFINITY;
  const auto quantize = [&](const KernelTable& table, std::vector<int16_t>& codes,
                            std::vector<float>& numbers) {
    codes.resize(kRows * kCols);
    numbers.resize(kRows * kCols / 32 * 4);
    float* sums = numbers.data() + kRows * kCols / 32;
    table.linear->quantize(x.data(), kCols, kCols, 0, kRows,
                           {codes.data(), numbers.data(), sums, sums + kRows * kCols / 32});
  };
  std::vector<int16_t> want_codes, got_codes;
  std::vector<float> want, got;
  quantize(kernel_table(Isa::kScalar), want_codes, want);
  quantize(kernels(), got_codes, got);
  EXPECT_EQ(got_codes, want_codes);
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_TRUE(got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i])))
        << i << ": " << got[i] << ", " << want[i];
  }
}

TEST_P(LinearOnEachIsa, ANonFiniteInputShowsInItsRowAndInNoOther) {
  for (const DType dtype : {DType::kF32, DType::kQ4_0, DType::kQ8_0, DType::kQ2_K}) {
    for (const float bad : {NAN, INFINITY}) {
      for (const Phase phase : kPhases) {
        Problem problem(dtype, 6, 17, 512, 9);
        const std::vector<float> clean = multiply(kernels(), phase, problem);
        problem.x[2 * 512 + 77] = bad;
        const std::vector<float> got = multiply(kernels(), phase, problem);
        for (size_t i = 0; i < got.size(); ++i) {
          if (i / 17 == 2) {
            EXPECT_FALSE(std::isfinite(got[i])) << dtype_info(dtype).name;
          } else {
            EXPECT_EQ(got[i], clean[i]) << dtype_info(dtype).name;
          }
        }
      }
    }
  }
}

TEST_P(LinearOnEachIsa, OneInputServesOutputsOfSeveralTypes) {
  const Problem first(DType::kQ4_K, 5, 40, 256, 1), second(DType::kF16, 5, 9, 256, 2),
      third(DType::kQ6_K, 5, 21, 256, 3);
  constexpr int64_t kStride = 80;
  for (const Phase phase : kPhases) {
    std::vector<float> y(5 * kStride, -1.0F);
    const LinearOutput outputs[] = {{first.weight, nullptr, y.data(), kStride},
                                    {second.weight, first.bias.data(), y.data() + 40, kStride},
                                    {third.weight, nullptr, y.data() + 49, kStride}};
    ThreadPool pool(2);
    LinearScratch scratch;
    linear(kernels(), phase, first.input(), outputs, pool, scratch);
    for (const LinearOutput& output : outputs) {
      const std::vector<float> want =
          multiply(kernels(), phase, first.input(), output.weight, output.bias, pool);
      for (int64_t row = 0; row < 5; ++row) {
        EXPECT_EQ(std::memcmp(output.y + row * kStride, want.data() + row * output.weight.rows,
                              static_cast<size_t>(output.weight.rows) * sizeof(float)),
                  0);
      }
    }
    for (size_t row = 0; row < 5; ++row) {
      for (size_t i = 70; i < kStride; ++i)
        EXPECT_EQ(y[row * kStride + i], -1.0F) << "written between the rows";
    }
    const int64_t grown = scratch.capacity_bytes();
    linear(kernels(), phase, first.input(), outputs, pool, scratch);
    EXPECT_EQ(scratch.capacity_bytes(), grown);
  }
}

TEST_P(LinearOnEachIsa, AGatedPairIsTheProductOfItsTwoOutputs) {
  constexpr int64_t kRows = 19, kOutputs = 147, kStride = 150;
  const Problem gate(DType::kQ4_1, kRows, kOutputs, 256, 1),
      up(DType::kQ8_0, kRows, kOutputs, 256, 2);
  for (const Phase phase : kPhases) {
    for (const Activation activation : {Activation::kSilu, Activation::kGeluTanh}) {
      for (const int threads : {1, 3}) {
        ThreadPool pool(threads);
        const auto plain = [&](const WeightView& weight) {
          return multiply(kernels(), phase, gate.input(), weight, nullptr, pool);
        };
        std::vector<float> want(kRows * kOutputs), y(kRows * kStride, -1.0F);
        kernels().elementwise->gated_activation(activation, plain(gate.weight).data(),
                                                plain(up.weight).data(), kRows * kOutputs,
                                                want.data());
        LinearScratch scratch;
        gated_linear(kernels(), phase, gate.input(),
                     {gate.weight, up.weight, activation, y.data(), kStride}, pool, scratch);
        for (int64_t row = 0; row < kRows; ++row) {
          const float* found = y.data() + row * kStride;
          EXPECT_EQ(std::memcmp(found, want.data() + row * kOutputs, kOutputs * sizeof(float)), 0)
              << phase_name(phase) << " row " << row;
          EXPECT_EQ(found[kOutputs], -1.0F) << "written between the rows";
        }
      }
    }
  }
}

TEST_P(LinearOnEachIsa, NoRowsIsNoWork) {
  ThreadPool pool(1);
  const Problem problem(DType::kQ4_0, 1, 3, 32, 1);
  LinearInput input = problem.input();
  input.num_rows = 0;
  EXPECT_TRUE(multiply(kernels(), Phase::kPrompt, input, problem.weight, nullptr, pool).empty());
}

}  // namespace
}  // namespace winnow

#include "attention/sketch_basis.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/attention_case.h"

namespace winnow {
namespace {

constexpr int kDims = 32;
constexpr int kRank = 8;
constexpr int kBasisTokens = 256;

// Keys whose spread along each axis is known: f16 keeps them to 2^-11.
class BasisCase : public AttentionCase {
 public:
  explicit BasisCase(uint32_t seed, int tokens = kBasisTokens)
      : AttentionCase({.tokens = tokens,
                       .kv_heads = 2,
                       .head_dim = kDims,
                       .dtype = KvDType::kF16,
                       .sketch_rank = kRank},
                      seed) {}

  // Head 1's axes are head 0's turned round. The mean of each block is far from zero.
  void spread(const std::vector<float>& deviations) {
    for (size_t i = 0; i < k().size(); ++i) {
      const size_t dim = i % kDims;
      const bool turned = i / kDims % 2 == 1;
      const size_t block = i / (2 * kDims) / 32;
      k()[i] = k()[i] / 1.5F * deviations[turned ? kDims - 1 - dim : dim] +
               static_cast<float>(block % 3) * 2;
    }
  }
  SketchBasis fit(int num_tokens, const SketchMoments* prior = nullptr) {
    write(scalar_kernels(), 0, shape().tokens);
    SketchBasis basis = empty_basis(kv().layout);
    for (int head = 0; head < 2; ++head) fit_head(kv(), pages(), num_tokens, prior, head, basis);
    return basis;
  }
};

// Deviations of `strong` for the axes given and 0.05 for the others.
std::vector<float> strong_axes(const std::vector<size_t>& axes, float strong = 2) {
  std::vector<float> deviations(kDims, 0.05F);
  for (const size_t axis : axes) deviations[axis] = strong;
  return deviations;
}

// How much of the axis the basis of a head can tell: |row|^2 of an orthonormal projection.
double told_of_axis(const float* projection, size_t axis) {
  double squares = 0;
  for (size_t i = 0; i < kRank; ++i) squares += std::pow(projection[axis * kRank + i], 2);
  return squares;
}

// Second moments that are diagonal, for both heads.
SketchMoments diagonal_moments(const std::vector<float>& keys, const std::vector<float>& queries) {
  SketchMoments moments;
  for (auto& [matrix, diagonal] :
       {std::pair(&moments.keys, &keys), std::pair(&moments.queries, &queries)}) {
    matrix->resize(2 * kDims * kDims);
    for (size_t head = 0; head < 2; ++head) {
      for (size_t dim = 0; dim < kDims; ++dim) {
        (*matrix)[(head * kDims + dim) * kDims + dim] = (*diagonal)[dim];
      }
    }
  }
  return moments;
}

const std::vector<size_t> kAxes = {1, 4, 9, 16, 17, 20, 25, 30};

TEST(SketchBasis, WithoutAPriorItSpansTheLeadingDirectionsOfTheCentredKeys) {
  BasisCase c(1);
  c.spread(strong_axes(kAxes));
  const SketchBasis basis = c.fit(kBasisTokens);
  for (size_t axis = 0; axis < kDims; ++axis) {
    const bool is_leading = std::find(kAxes.begin(), kAxes.end(), axis) != kAxes.end();
    EXPECT_NEAR(told_of_axis(basis.keys_of(0), axis), is_leading, 0.05) << "axis " << axis;
    EXPECT_NEAR(told_of_axis(basis.keys_of(1), kDims - 1 - axis), is_leading, 0.05);
  }
  EXPECT_EQ(basis.keys, basis.queries);
}

TEST(SketchBasis, ABlocksMeanDoesNotCount) {
  BasisCase c(2);
  std::vector<float> weak = strong_axes(kAxes);
  c.spread(weak);
  // Whole blocks shifted far along an axis that is weak within them.
  for (size_t i = 0; i < c.k().size(); ++i) {
    const size_t block = i / (2 * kDims) / 32;
    if (i % (2 * kDims) == 0) c.k()[i] += static_cast<float>(block) * 10;
  }
  EXPECT_LT(told_of_axis(c.fit(kBasisTokens).keys_of(0), 0), 0.05);
}

// Keys within the span of the basis are told exactly: q . k = (q . queries) . (k . keys).
void expect_exact_products(const BasisCase& c, const SketchBasis& basis) {
  for (int token = 0; token < kBasisTokens; token += 7) {
    for (int head = 0; head < 2; ++head) {
      std::vector<double> centred(kDims);
      const int block = token / 32 * 32;
      for (int dim = 0; dim < kDims; ++dim) {
        double mean = 0;
        for (int i = block; i < block + 32; ++i) mean += c.stored_k(i, head, dim) / 32;
        centred[static_cast<size_t>(dim)] = c.stored_k(token, head, dim) - mean;
      }
      const float* q = c.query(token, head);
      double exact = 0;
      double magnitude = 0;
      for (int dim = 0; dim < kDims; ++dim) {
        exact += q[dim] * centred[static_cast<size_t>(dim)];
        magnitude += std::abs(q[dim] * centred[static_cast<size_t>(dim)]);
      }
      double product = 0;
      for (int i = 0; i < kRank; ++i) {
        double query = 0, key = 0;
        for (int dim = 0; dim < kDims; ++dim) {
          query += q[dim] * double{basis.queries_of(head)[dim * kRank + i]};
          key += centred[static_cast<size_t>(dim)] * basis.keys_of(head)[dim * kRank + i];
        }
        product += query * key;
      }
      // The basis is stored in f32; the keys' other axes hold the rounding of what is not there.
      ASSERT_NEAR(product, exact, magnitude * 1e-4 + 1e-5);
    }
  }
}

std::vector<float> within_axes(const std::vector<size_t>& axes) {
  std::vector<float> deviations(kDims, 0.0F);
  for (const size_t axis : axes) deviations[axis] = 2;
  return deviations;
}

TEST(SketchBasis, ProductsOfKeysWithinItsSpanAreExact) {
  BasisCase c(3);
  c.spread(within_axes(kAxes));
  expect_exact_products(c, c.fit(kBasisTokens));
}

TEST(SketchBasis, ProductsStayExactInTheMetricOfAPrior) {
  BasisCase c(4);
  c.spread(within_axes({12, 13, 14, 15, 16, 17, 18, 19}));  // turned round: the same axes
  std::vector<float> keys = within_axes({12, 13, 14, 15, 16, 17, 18, 19});
  std::vector<float> queries(kDims);
  for (size_t dim = 0; dim < kDims; ++dim) queries[dim] = 0.1F + static_cast<float>(dim % 5);
  const SketchMoments prior = diagonal_moments(keys, queries);
  const SketchBasis basis = c.fit(kBasisTokens, &prior);
  EXPECT_NE(basis.keys, basis.queries);
  expect_exact_products(c, basis);
}

TEST(SketchBasis, DirectionsThatNoQueryAsksForAreNotTold) {
  BasisCase c(5);
  std::vector<float> deviations = strong_axes(kAxes);
  deviations[0] = 6;  // strongest of all
  c.spread(deviations);
  EXPECT_GT(told_of_axis(c.fit(kBasisTokens).keys_of(0), 0), 0.95);
  std::vector<float> queries(kDims, 1.0F);
  queries[0] = 1e-6F;
  std::vector<float> prior_keys = strong_axes(kAxes);
  const SketchMoments prior = diagonal_moments(prior_keys, queries);
  const SketchBasis basis = c.fit(kBasisTokens, &prior);
  double told = 0;
  for (size_t i = 0; i < kRank; ++i) {
    told += std::abs(double{basis.keys_of(0)[i]} * basis.queries_of(0)[i]);
  }
  EXPECT_LT(told, 0.05);
}

TEST(SketchBasis, APriorWeighsAsMuchAsThePrompt) {
  // Four axes are strong in the prompt alone, four in the prior alone: both are told.
  BasisCase c(6);
  c.spread(strong_axes({1, 4, 9, 14}, 3));
  std::vector<float> prior_keys(kDims, 0.001F);
  for (const size_t axis : {2, 5, 11, 13}) prior_keys[axis] = 1e4F;
  const SketchMoments prior = diagonal_moments(prior_keys, std::vector<float>(kDims, 1.0F));
  const SketchBasis basis = c.fit(kBasisTokens, &prior);
  for (const size_t axis : {1, 4, 9, 14, 2, 5, 11, 13}) {
    double told = 0;
    for (size_t i = 0; i < kRank; ++i) {
      told += double{basis.keys_of(0)[axis * kRank + i]} * basis.queries_of(0)[axis * kRank + i];
    }
    EXPECT_GT(told, 0.9) << "axis " << axis;
  }
}

TEST(SketchBasis, DependsOnItsTokensAlone) {
  BasisCase c(7, 512);
  c.spread(strong_axes(kAxes));
  const SketchBasis want = c.fit(kBasisTokens);
  BasisCase other(7, 512);
  other.spread(strong_axes(kAxes));
  for (size_t i = kBasisTokens * 2 * kDims; i < other.k().size(); ++i) other.k()[i] = NAN;
  EXPECT_EQ(other.fit(kBasisTokens).keys, want.keys);
}

TEST(SketchBasis, StaysFiniteWhateverTheKeys) {
  for (const float bad : {NAN, INFINITY, 0.0F}) {
    BasisCase c(8);
    if (bad == 0) {
      std::fill(c.k().begin(), c.k().end(), 0.0F);
    } else {
      c.k()[1234] = bad;
    }
    const SketchMoments prior =
        diagonal_moments(std::vector<float>(kDims, 1.0F), std::vector<float>(kDims, 0.0F));
    for (const SketchMoments* moments : {static_cast<const SketchMoments*>(nullptr), &prior}) {
      const SketchBasis basis = c.fit(kBasisTokens, moments);
      for (const float value : basis.keys) ASSERT_TRUE(std::isfinite(value));
      for (const float value : basis.queries) ASSERT_TRUE(std::isfinite(value));
    }
  }
}

}  // namespace
}  // namespace winnow

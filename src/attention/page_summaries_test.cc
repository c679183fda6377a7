#include "attention/page_summaries.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/attention_case.h"
#include "support/f32_limits.h"

namespace winnow {
namespace {

// A basis of random projections.
SketchBasis random_basis(const KvLayout& layout, uint32_t seed) {
  SketchBasis basis = empty_basis(layout);
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0, 0.2F);
  for (float& value : basis.keys) value = normal(rng);
  return basis;
}

BlockSummaries summaries_of(const AttentionCase& c, int kv_head, int block) {
  const KvLayout& layout = c.kv().layout;
  const std::byte* page = c.kv().page(c.pages()[static_cast<size_t>(block / layout.blocks())]);
  return block_summaries(layout, page, kv_head, block % layout.blocks(), 1);
}
const float* v_mean_of(const AttentionCase& c, int kv_head, int block) {
  const KvLayout& layout = c.kv().layout;
  const std::byte* page = c.kv().page(c.pages()[static_cast<size_t>(block / layout.blocks())]);
  return v_mean(layout, page, kv_head, block % layout.blocks());
}

std::vector<CaseShape> shapes() {
  return {{.tokens = 384, .kv_heads = 3, .head_dim = 16, .sketch_rank = 4},
          {.tokens = 256, .kv_heads = 2, .head_dim = 80, .sketch_rank = 20},
          {.tokens = 256, .head_dim = 128, .dtype = KvDType::kF16, .sketch_rank = 32},
          {.tokens = 128, .head_dim = 256, .sketch_rank = 64}};
}

TEST(PageSummaries, MeansAreThoseOfTheKeysAndValuesAsStored) {
  ThreadPool pool(2);
  for (const CaseShape& shape : shapes()) {
    SCOPED_TRACE(shape.name());
    AttentionCase c(shape, 1);
    c.write(scalar_kernels(), 0, shape.tokens);
    const int num_pages = shape.tokens / kPageTokens;
    summarize_pages(c.kv(), c.pages(), 0, num_pages, nullptr, pool);
    for (int block = 0; block < num_pages * 4; ++block) {
      for (int kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
        for (int dim = 0; dim < shape.head_dim; ++dim) {
          double k = 0, v = 0, k_magnitude = 0, v_magnitude = 0;
          for (int token = block * 32; token < (block + 1) * 32; ++token) {
            k += c.stored_k(token, kv_head, dim) / 32;
            v += c.stored_v(token, kv_head, dim) / 32;
            k_magnitude += std::abs(c.stored_k(token, kv_head, dim)) / 32;
            v_magnitude += std::abs(c.stored_v(token, kv_head, dim)) / 32;
          }
          ASSERT_NEAR(summaries_of(c, kv_head, block).k_means[dim], k, k_magnitude * 32 * kEpsilon);
          ASSERT_NEAR(v_mean_of(c, kv_head, block)[dim], v, v_magnitude * 32 * kEpsilon);
        }
      }
    }
  }
}

TEST(PageSummaries, SketchesAreTheProjectedCentredKeysToHalfAStep) {
  ThreadPool pool(2);
  for (const CaseShape& shape : shapes()) {
    SCOPED_TRACE(shape.name());
    AttentionCase c(shape, 2);
    c.write(scalar_kernels(), 0, shape.tokens);
    const SketchBasis basis = random_basis(c.kv().layout, 3);
    const int num_pages = shape.tokens / kPageTokens;
    summarize_pages(c.kv(), c.pages(), 0, num_pages, &basis, pool);
    for (int token = 0; token < shape.tokens; token += 3) {
      for (int kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
        const BlockSummaries block = summaries_of(c, kv_head, token / 32);
        const float step = block.sketch_scales[0];
        for (int i = 0; i < shape.sketch_rank; ++i) {
          double want = 0;
          double magnitude = 0;
          for (int dim = 0; dim < shape.head_dim; ++dim) {
            const double centred = c.stored_k(token, kv_head, dim) - block.k_means[dim];
            const double product = centred * basis.keys_of(kv_head)[dim * shape.sketch_rank + i];
            want += product;
            magnitude += std::abs(product);
          }
          const int number = block.sketches[token % 32 * shape.sketch_rank + i];
          ASSERT_GE(number, 1);
          const double error = magnitude * (shape.head_dim + 4) * kEpsilon + 0.5001 * step;
          ASSERT_NEAR((number - 128.0) * step, want, error) << "token " << token;
        }
      }
    }
  }
}

TEST(PageSummaries, TheLargestCoordinateOfABlockTakesTheWholeRange) {
  ThreadPool pool(1);
  AttentionCase c({.tokens = 128, .head_dim = 64, .sketch_rank = 16}, 4);
  c.write(scalar_kernels(), 0, 128);
  const SketchBasis basis = random_basis(c.kv().layout, 5);
  summarize_pages(c.kv(), c.pages(), 0, 1, &basis, pool);
  for (int block = 0; block < 4; ++block) {
    int largest = 0;
    const uint8_t* sketches = summaries_of(c, 0, block).sketches;
    for (int i = 0; i < 32 * 16; ++i) largest = std::max(largest, std::abs(sketches[i] - 128));
    EXPECT_EQ(largest, 127);
  }
}

TEST(PageSummaries, EqualKeysHaveSketchesOfZero) {
  ThreadPool pool(1);
  AttentionCase c({.tokens = 128, .head_dim = 64, .sketch_rank = 16}, 6);
  std::fill(c.k().begin(), c.k().end(), 1.5F);
  c.write(scalar_kernels(), 0, 128);
  const SketchBasis basis = random_basis(c.kv().layout, 7);
  summarize_pages(c.kv(), c.pages(), 0, 1, &basis, pool);
  for (int i = 0; i < 128 * 16; ++i) ASSERT_EQ(summaries_of(c, 0, 0).sketches[i], 128);
  EXPECT_TRUE(std::isfinite(summaries_of(c, 0, 3).sketch_scales[0]));
}

TEST(PageSummaries, ABlockWithAKeyThatIsNotFiniteHasANaNScaleAndItsNeighboursDoNot) {
  ThreadPool pool(1);
  for (const float bad : {NAN, INFINITY, -INFINITY, 3.3e38F}) {
    SCOPED_TRACE(bad);
    AttentionCase c({.tokens = 128, .kv_heads = 2, .head_dim = 64, .sketch_rank = 16}, 8);
    // 3.3e38 in every key: their sum is no number of f32.
    for (int token = 64; token < (bad == 3.3e38F ? 96 : 65); ++token) {
      c.k()[static_cast<size_t>(token * 128 + 64 + 7)] = bad;
    }
    c.write(scalar_kernels(), 0, 128);
    const SketchBasis basis = random_basis(c.kv().layout, 9);
    summarize_pages(c.kv(), c.pages(), 0, 1, &basis, pool);
    for (int kv_head = 0; kv_head < 2; ++kv_head) {
      for (int block = 0; block < 4; ++block) {
        EXPECT_EQ(std::isnan(summaries_of(c, kv_head, block).sketch_scales[0]),
                  kv_head == 1 && block == 2);
      }
    }
  }
}

TEST(PageSummaries, OnlyThePagesAskedForAreWritten) {
  ThreadPool pool(3);
  AttentionCase c({.tokens = 512, .kv_heads = 2, .head_dim = 16, .sketch_rank = 4}, 10);
  c.fill_pages(std::byte{0x55});
  c.write(scalar_kernels(), 0, 512);
  const KvLayout& layout = c.kv().layout;
  const auto page = [&](int i) { return c.kv().page(c.pages()[static_cast<size_t>(i)]); };
  std::vector<std::vector<std::byte>> before;
  for (int i = 0; i < 4; ++i) before.emplace_back(page(i), page(i) + layout.page_bytes());
  const SketchBasis basis = random_basis(layout, 11);
  summarize_pages(c.kv(), c.pages(), 1, 3, &basis, pool);
  for (const int i : {0, 3}) {
    EXPECT_TRUE(std::equal(before[static_cast<size_t>(i)].begin(),
                           before[static_cast<size_t>(i)].end(), page(i)));
  }
  for (const int i : {1, 2}) {  // K and V stay, and so does what lies behind the summaries
    EXPECT_TRUE(std::equal(page(i), page(i) + layout.means_offset(0),
                           before[static_cast<size_t>(i)].begin()));
    const int64_t end = layout.sketch_offset(layout.kv_heads);
    EXPECT_TRUE(std::equal(page(i) + end, page(i) + layout.page_bytes(),
                           before[static_cast<size_t>(i)].begin() + end));
  }
}

}  // namespace
}  // namespace winnow

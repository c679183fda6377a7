#include "attention/attention.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <bit>
#include <cstring>

#include "support/attention_case.h"
#include "support/each_isa.h"
#include "support/same_bits.h"

namespace winnow {
namespace {

using test::expect_same_bits;

using AttentionOnEachIsa = EachIsa;
INSTANTIATE_TEST_SUITE_P(Isa, AttentionOnEachIsa, all_isas(), isa_test_name);

// Compares rows at `positions` with the computation in double.
void expect_rows_within_bound(const AttentionCase& c, std::span<const float> out, Isa isa,
                              std::span<const int> positions) {
  const int dims = c.shape().head_dim;
  for (const int position : positions) {
    for (int head = 0; head < c.shape().heads(); ++head) {
      const auto want = c.expected(position, head, product_epsilon(isa, c.shape().dtype));
      const float* got = out.data() + position * c.row_floats() + int64_t{head} * dims;
      for (int dim = 0; dim < dims; ++dim) {
        const auto& [value, bound] = want[static_cast<size_t>(dim)];
        ASSERT_TRUE(std::isfinite(got[dim]));
        ASSERT_NEAR(got[dim], value, bound)
            << "position " << position << ", head " << head << ", dim " << dim;
      }
    }
  }
}

std::vector<int> sampled_positions(int tokens) {
  std::vector<int> positions;
  for (const int position : {0, 1, 4, 5, 63, 126, 127, 128, 129, 255, 256, 511, 512, 640, 999}) {
    if (position < tokens - 1) positions.push_back(position);
  }
  positions.push_back(tokens - 1);
  return positions;
}

std::vector<CaseShape> awkward_shapes() {
  std::vector<CaseShape> shapes;
  for (const int tokens : {1, 127, 128, 129}) {
    for (const int group : {1, 3}) shapes.push_back({.tokens = tokens, .group = group});
  }
  for (const int group : {1, 2, 3, 7, 8, 16}) {
    shapes.push_back({.tokens = 260, .kv_heads = 2, .group = group, .head_dim = 16});
  }
  for (const int head_dim : {16, 64, 80, 96, 128, 256}) {
    for (const KvDType dtype : {KvDType::kBf16, KvDType::kF16}) {
      shapes.push_back({.tokens = 200, .group = 2, .head_dim = head_dim, .dtype = dtype});
    }
  }
  for (const int window : {1, 5, 128, 512}) {
    shapes.push_back({.tokens = 1000, .group = 2, .head_dim = 16, .window = window});
    shapes.push_back({.tokens = 700, .group = 7, .head_dim = 16, .window = window});
  }
  for (const float cap : {5.0F, 50.0F}) {
    shapes.push_back({.tokens = 260, .group = 4, .head_dim = 64, .window = 128, .soft_cap = cap});
  }
  shapes.push_back({.tokens = 1000, .group = 3, .head_dim = 32, .dtype = KvDType::kF16});
  return shapes;
}

TEST_P(AttentionOnEachIsa, PromptAttentionAgreesWithDoubleOverContiguousMemory) {
  ThreadPool pool(1);
  for (const CaseShape& shape : awkward_shapes()) {
    SCOPED_TRACE(shape.name());
    AttentionCase c(shape, 1);
    c.fill_pages(std::byte{0xff});  // NaN wherever nothing is written
    const std::vector<float> out = c.prompt(kernels(), shape.tokens, pool);
    ASSERT_NO_FATAL_FAILURE(
        expect_rows_within_bound(c, out, GetParam(), sampled_positions(shape.tokens)));
  }
}

TEST_P(AttentionOnEachIsa, GenerateAttentionAgreesWithDoubleOverContiguousMemory) {
  ThreadPool pool(1);
  std::vector<CaseShape> shapes = awkward_shapes();
  shapes.push_back({.tokens = 1900, .kv_heads = 2, .group = 3});
  for (const CaseShape& shape : shapes) {
    SCOPED_TRACE(shape.name());
    AttentionCase c(shape, 2);
    c.fill_pages(std::byte{0xff});
    const int last = shape.tokens - 1;
    c.write(kernels(), 0, shape.tokens);
    std::vector<float> out(static_cast<size_t>(shape.tokens * c.row_floats()));
    AttentionScratch scratch;
    AttentionStats stats;
    const AttentionRows rows = c.rows(last, shape.tokens, out.data() + last * c.row_floats());
    generate_attention(kernels(), c.attention(), c.kv(), std::span(&rows, 1), pool, scratch);
    ASSERT_NO_FATAL_FAILURE(expect_rows_within_bound(c, out, GetParam(), std::array{last}));
  }
}

TEST_P(AttentionOnEachIsa, ARowsBitsDoNotDependOnTheChunk) {
  ThreadPool pool(1);
  for (const CaseShape& shape :
       {CaseShape{.tokens = 333, .kv_heads = 2, .group = 3, .head_dim = 32},
        CaseShape{.tokens = 400, .group = 7, .head_dim = 16, .window = 100},
        CaseShape{.tokens = 300, .group = 1, .head_dim = 48, .window = 5, .dtype = KvDType::kF16},
        CaseShape{.tokens = 260, .group = 16, .head_dim = 16, .soft_cap = 20}}) {
    SCOPED_TRACE(shape.name());
    AttentionCase c(shape, 3);
    const std::vector<float> whole = c.prompt(kernels(), shape.tokens, pool);
    for (const int chunk : {1, 97, 128, 256}) {
      SCOPED_TRACE(chunk);
      c.fill_pages(std::byte{0xff});
      ASSERT_NO_FATAL_FAILURE(expect_same_bits(c.prompt(kernels(), chunk, pool), whole));
    }
  }
}

TEST_P(AttentionOnEachIsa, ARowsBitsDoNotDependOnTheThreads) {
  AttentionCase c({.tokens = 600, .kv_heads = 2, .group = 3, .head_dim = 16}, 4);
  ThreadPool one(1);
  const std::vector<float> prompt = c.prompt(kernels(), c.shape().tokens, one);
  std::vector<float> generated;
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    expect_same_bits(c.prompt(kernels(), c.shape().tokens, pool), prompt);
    std::vector<float> out(static_cast<size_t>(c.row_floats()));
    AttentionScratch scratch;
    AttentionStats stats;
    const AttentionRows rows = c.rows(c.shape().tokens - 1, c.shape().tokens, out.data());
    generate_attention(kernels(), c.attention(), c.kv(), std::span(&rows, 1), pool, scratch);
    if (generated.empty()) generated = out;
    expect_same_bits(out, generated);
  }
}

TEST_P(AttentionOnEachIsa, AGeneratedTokensBitsDoNotDependOnItsNeighbours) {
  AttentionCase c({.tokens = 1100, .kv_heads = 2, .group = 3, .head_dim = 32}, 5);
  c.write(kernels(), 0, c.shape().tokens);
  ThreadPool pool(2);
  AttentionScratch scratch;
  AttentionStats stats;
  // Sequences of one, two and three pieces that share a prefix.
  std::vector<std::vector<float>> together(5,
                                           std::vector<float>(static_cast<size_t>(c.row_floats())));
  std::vector<AttentionRows> batch;
  const int positions[] = {0, 200, 511, 512, 1099};
  for (size_t i = 0; i < together.size(); ++i) {
    batch.push_back(c.rows(positions[i], positions[i] + 1, together[i].data()));
  }
  generate_attention(kernels(), c.attention(), c.kv(), batch, pool, scratch);
  for (size_t i = 0; i < together.size(); ++i) {
    std::vector<float> alone(static_cast<size_t>(c.row_floats()));
    AttentionRows rows = batch[i];
    rows.out = alone.data();
    generate_attention(kernels(), c.attention(), c.kv(), std::span(&rows, 1), pool, scratch);
    ASSERT_NO_FATAL_FAILURE(expect_same_bits(together[i], alone));
  }
}

// NaN in a token's K or V reaches exactly the rows that see the token.
TEST_P(AttentionOnEachIsa, NaNReachesOnlyTheRowsThatSeeIt) {
  ThreadPool pool(1);
  for (const int window : {0, 50}) {
    const CaseShape shape{.tokens = 300, .group = 3, .head_dim = 32, .window = window};
    AttentionCase clean(shape, 6);
    const std::vector<float> want = clean.prompt(kernels(), shape.tokens, pool);
    for (const auto& [in_v, bad] : {std::pair{false, NAN}, {false, -NAN}, {true, NAN}}) {
      SCOPED_TRACE(in_v ? "V" : "K");
      AttentionCase c(shape, 6);
      const int bad_token = 171;
      (in_v ? c.v() : c.k())[bad_token * 32 + 5] = bad;
      const std::vector<float> got = c.prompt(kernels(), shape.tokens, pool);
      for (int position = 0; position < shape.tokens; ++position) {
        const bool sees = position >= bad_token && (window == 0 || position < bad_token + window);
        for (int64_t i = 0; i < c.row_floats(); ++i) {
          const size_t idx = static_cast<size_t>(position * c.row_floats() + i);
          if (sees && (!in_v || i % 32 == 5)) {
            ASSERT_TRUE(std::isnan(got[idx])) << "position " << position;
          } else {
            ASSERT_EQ(std::bit_cast<uint32_t>(got[idx]), std::bit_cast<uint32_t>(want[idx]))
                << "position " << position;
          }
        }
      }
    }
  }
}

// The first token's logit lies so far above the others' that its V is all that counts.
TEST_P(AttentionOnEachIsa, LogitsThatAreFarApartStayFinite) {
  ThreadPool pool(1);
  for (const float far : {10.0F, 1e3F, 5e3F, 1e4F, 3e4F}) {
    const CaseShape shape{.tokens = 200, .group = 2, .head_dim = 32};
    AttentionCase c(shape, 6);
    for (float& q : c.q()) q = 32;
    for (size_t i = 0; i < c.k().size(); ++i) c.k()[i] = i < 32 ? far : -far;
    const std::vector<float> got = c.prompt(kernels(), shape.tokens, pool);
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], got[i % 32], 1e-2 * std::abs(got[i % 32])) << far << ", number " << i;
    }
  }
}

// Every 32 tokens outweigh all before by e^12, so that a running maximum moves at each step.
// Queries and keys are exact in bf16: what is left are the weights' own roundings.
TEST_P(AttentionOnEachIsa, LaterKeysMayOutweighEarlierOnesAtEveryStep) {
  ThreadPool pool(1);
  for (const CaseShape& shape :
       {CaseShape{.tokens = 420, .group = 7}, CaseShape{.tokens = 420, .group = 1, .head_dim = 128},
        CaseShape{.tokens = 420, .group = 2, .head_dim = 80},
        CaseShape{.tokens = 420, .group = 3, .head_dim = 32}}) {
    SCOPED_TRACE(shape.name());
    AttentionCase c(shape, 19);
    const auto dims = static_cast<size_t>(shape.head_dim);
    std::ranges::fill(c.q(), 0.0F);
    for (size_t i = 0; i < c.q().size(); i += dims) {
      c.q()[i] = 4 * std::sqrt(static_cast<float>(shape.head_dim));
      // Some rows see their first keys as the largest.
      if (i / dims % 5 == 0) c.q()[i] = -c.q()[i];
    }
    for (size_t i = 0; i < c.k().size(); i += dims) {
      const auto token = static_cast<float>(i / dims);
      c.k()[i] = 3 * std::floor(token / kStepTokens) + std::fmod(token, 7.0F) / 8;
    }
    const std::vector<float> want = c.prompt(kernel_table(Isa::kScalar), shape.tokens, pool);
    const std::vector<float> got = c.prompt(kernels(), shape.tokens, pool);
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 0.02F) << i;
    for (const int chunk : {1, 97}) {
      SCOPED_TRACE(chunk);
      c.fill_pages(std::byte{0xff});
      ASSERT_NO_FATAL_FAILURE(expect_same_bits(c.prompt(kernels(), chunk, pool), got));
    }
  }
}

TEST_P(AttentionOnEachIsa, AWindowLayerTouchesOnlyThePagesOfItsWindow) {
  const CaseShape shape{.tokens = 1000, .kv_heads = 4, .group = 1, .head_dim = 64, .window = 150};
  AttentionCase c(shape, 7);
  c.write(kernels(), 0, shape.tokens);
  ThreadPool pool(1);
  AttentionScratch scratch;
  AttentionStats stats;
  std::vector<float> out(static_cast<size_t>(100 * c.row_floats()));
  // Positions 900 to 999 see 751 and later: pages 5, 6 and 7.
  std::vector<std::pair<void*, size_t>> locked;
  for (int page_idx = 0; page_idx < 5; ++page_idx) {
    const auto start =
        reinterpret_cast<uintptr_t>(c.kv().page(c.pages()[static_cast<size_t>(page_idx)]));
    const uintptr_t from = (start + 4095) / 4096 * 4096;
    const uintptr_t to = (start + static_cast<uintptr_t>(c.kv().page_bytes)) / 4096 * 4096;
    locked.emplace_back(reinterpret_cast<void*>(from), to - from);
    ASSERT_EQ(mprotect(locked.back().first, locked.back().second, PROT_NONE), 0);
  }
  prompt_attention(kernels(), c.attention(), c.kv(), c.rows(900, 1000, out.data()), pool, scratch,
                   stats);
  const AttentionRows last = c.rows(999, 1000, out.data());
  generate_attention(kernels(), c.attention(), c.kv(), std::span(&last, 1), pool, scratch);
  for (const auto& [address, bytes] : locked) mprotect(address, bytes, PROT_READ | PROT_WRITE);
}

TEST_P(AttentionOnEachIsa, NothingIsAllocatedOnceTheScratchHasGrown) {
  AttentionCase c({.tokens = 600, .group = 2, .head_dim = 32}, 8);
  c.write(kernels(), 0, 600);
  ThreadPool pool(1);
  AttentionScratch scratch;
  AttentionStats stats;
  std::vector<float> out(static_cast<size_t>(600 * c.row_floats()));
  const AttentionRows last = c.rows(599, 600, out.data());
  const auto run = [&] {
    prompt_attention(kernels(), c.attention(), c.kv(), c.rows(0, 600, out.data()), pool, scratch,
                     stats);
    generate_attention(kernels(), c.attention(), c.kv(), std::span(&last, 1), pool, scratch);
  };
  run();
  const auto* tiles = scratch.tiles.data();
  const auto* pieces = scratch.pieces.data();
  run();
  EXPECT_EQ(scratch.tiles.data(), tiles);
  EXPECT_EQ(scratch.pieces.data(), pieces);
}

// One tile of rows that see whole steps of 32 tokens from anywhere.
class StepTile {
 public:
  StepTile(const KernelTable& kernels, const AttentionCase& c, int queries)
      : kernels_(kernels),
        c_(c),
        scratch_(static_cast<size_t>(
            kernels.attention->scratch_bytes(queries * c.shape().group, c.shape().head_dim))),
        out_(static_cast<size_t>(queries * c.row_floats())) {
    const AttentionShape shape = c.attention();
    tile_ = {.q = c.query(first_position(queries), 0),
             .out = out_.data(),
             .query_stride = c.row_floats(),
             .queries = queries,
             .group = c.shape().group,
             .head_dim = c.shape().head_dim,
             .first_position = first_position(queries),
             .window = shape.window,
             .dtype = c.shape().dtype,
             .scale = shape.scale,
             .soft_cap = shape.soft_cap,
             .scratch = scratch_.data()};
    kernels.attention->begin(tile_);
  }

  int first_position(int queries) const { return c_.shape().tokens - queries; }

  // Steps by their number in the sequence, visited together.
  void visit_steps(std::span<const int> steps) {
    std::vector<AttentionStep> visited;
    for (const int step : steps) {
      const AttentionBlock block = block_of(step);
      visited.push_back({block.k, block.v, block.begin_token});
    }
    kernels_.attention->visit_steps(tile_, visited.data(), static_cast<int32_t>(visited.size()));
  }
  void visit_one_by_one(std::span<const int> steps) {
    for (const int step : steps) {
      const AttentionBlock block = block_of(step);
      kernels_.attention->visit(tile_, &block, 1);
    }
  }
  // Pages [0, num_pages), `at_once` in a visit.
  void visit_pages(int num_pages, int at_once) {
    std::vector<AttentionBlock> blocks;
    for (int page = 0; page < num_pages; ++page) {
      blocks.push_back(block_of(page * kPageTokens / kStepTokens));
      blocks.back().end_token = kPageTokens;
    }
    for (int page = 0; page < num_pages; page += at_once) {
      kernels_.attention->visit(tile_, &blocks[static_cast<size_t>(page)],
                                std::min(at_once, num_pages - page));
    }
  }
  std::vector<float> finish() {
    kernels_.attention->finish(tile_);
    return out_;
  }

 private:
  AttentionBlock block_of(int step) const {
    const int token = step * kStepTokens;
    const KvLayout& layout = c_.kv().layout;
    const std::byte* page = c_.kv().page(c_.pages()[static_cast<size_t>(token / kPageTokens)]);
    return {.k = page + layout.k_offset(0),
            .v = page + layout.v_offset(0),
            .position = token / kPageTokens * kPageTokens,
            .begin_token = token % kPageTokens,
            .end_token = token % kPageTokens + kStepTokens};
  }

  const KernelTable& kernels_;
  const AttentionCase& c_;
  AlignedBuffer<std::byte> scratch_;
  std::vector<float> out_;
  AttentionTile tile_;
};

TEST_P(AttentionOnEachIsa, HowPagesAreSharedOutAmongVisitsLeavesNoTrace) {
  // One strip of rows, pairs of strips, and both; the last page cuts through the rows.
  for (const CaseShape& shape :
       {CaseShape{.tokens = 701, .group = 1}, CaseShape{.tokens = 701, .group = 7, .window = 200},
        CaseShape{.tokens = 701, .group = 3, .head_dim = 80, .soft_cap = 8},
        CaseShape{.tokens = 701, .group = 8, .head_dim = 128}}) {
    SCOPED_TRACE(shape.name());
    AttentionCase c(shape, 17);
    c.write(kernels(), 0, shape.tokens);
    for (const int queries : {1, 9, 16}) {
      const int num_pages = (shape.tokens + kPageTokens - 1) / kPageTokens;
      StepTile one_by_one(kernels(), c, queries);
      one_by_one.visit_pages(num_pages, 1);
      const std::vector<float> want = one_by_one.finish();
      for (const int at_once : {2, 4, 6}) {
        StepTile together(kernels(), c, queries);
        together.visit_pages(num_pages, at_once);
        SCOPED_TRACE(at_once);
        ASSERT_NO_FATAL_FAILURE(expect_same_bits(together.finish(), want));
      }
    }
  }
}

TEST_P(AttentionOnEachIsa, StepsFromAnyPagesAddWhatVisitsOfTheSameTokensAdd) {
  // Fifteen steps of the four pages before the tile's own, in no order.
  const std::vector<int> order = {9, 3, 14, 0, 11, 1, 7, 15, 4, 2, 13, 6, 10, 5, 12};
  for (const CaseShape& shape :
       {CaseShape{.tokens = 640, .group = 1}, CaseShape{.tokens = 640, .group = 3, .head_dim = 80},
        CaseShape{.tokens = 640, .group = 7, .head_dim = 16, .dtype = KvDType::kF16},
        CaseShape{.tokens = 640, .group = 2, .head_dim = 128, .soft_cap = 8},
        CaseShape{.tokens = 640, .group = 1, .head_dim = 256}}) {
    SCOPED_TRACE(shape.name());
    AttentionCase c(shape, 10);
    c.write(kernels(), 0, shape.tokens);
    for (const int queries : {1, 5, 16}) {
      StepTile one_by_one(kernels(), c, queries);
      one_by_one.visit_one_by_one(order);
      const std::vector<float> want = one_by_one.finish();
      for (const size_t at_once : {1, 2, 3, 4, 11, 15}) {
        StepTile together(kernels(), c, queries);
        for (size_t i = 0; i < order.size(); i += at_once) {
          together.visit_steps(std::span(order).subspan(i, std::min(at_once, order.size() - i)));
        }
        const std::vector<float> got = together.finish();
        for (int query = 0; query < queries; query += 4) {
          for (int head = 0; head < shape.group; ++head) {
            AttentionCase::ExpectedRow row(c, together.first_position(queries) + query, head,
                                           product_epsilon(GetParam(), shape.dtype));
            for (const int step : order) {
              for (int i = 0; i < kStepTokens; ++i) row.add_token(step * kStepTokens + i);
            }
            const auto expected = row.result();
            const int64_t first = query * c.row_floats() + int64_t{head} * shape.head_dim;
            for (int dim = 0; dim < shape.head_dim; ++dim) {
              const auto& [value, bound] = expected[static_cast<size_t>(dim)];
              const auto idx = static_cast<size_t>(first + dim);
              ASSERT_NEAR(got[idx], value, bound) << at_once << " at once, query " << query;
              ASSERT_NEAR(want[idx], value, bound) << "one by one, query " << query;
            }
          }
        }
        if (at_once == 1) expect_same_bits(got, want);
      }
    }
  }
}

// Bit patterns: every class of number, ties, both ends of each format's range.
std::vector<float> awkward_numbers() {
  std::vector<float> values = {0.0F,     -0.0F,   1.0F,     65504.0F,  65519.9F, 65520.0F,
                               -1e30F,   3.4e38F, INFINITY, -INFINITY, 6.0e-8F,  2.98e-8F,
                               2.99e-8F, 6.1e-5F, NAN,      1e-40F};
  for (uint32_t exponent = 0; exponent < 256; ++exponent) {
    for (const uint32_t mantissa : {0x0U, 0xfffU, 0x1000U, 0x1001U, 0x3000U, 0x7fffU, 0x8000U,
                                    0x8001U, 0x18000U, 0x7fffffU}) {
      values.push_back(std::bit_cast<float>(exponent << 23 | mantissa));
      values.push_back(std::bit_cast<float>(0x80000000U | exponent << 23 | mantissa));
    }
  }
  while (values.size() % 64 != 0) values.push_back(1.5F);
  return values;
}

TEST_P(AttentionOnEachIsa, WritesKAndVAsTheScalarConversionsSay) {
  for (const KvDType dtype : {KvDType::kBf16, KvDType::kF16}) {
    const std::vector<float> values = awkward_numbers();
    const int tokens = static_cast<int>(values.size()) / 64;
    AttentionCase c({.tokens = tokens, .kv_heads = 2, .head_dim = 32, .dtype = dtype}, 9);
    c.k() = values;
    c.v() = values;
    std::reverse(c.v().begin(), c.v().end());
    c.fill_pages(std::byte{0x55});
    for (int begin = 0, size = 1; begin < tokens; begin += size, size = size % 5 + 1) {
      c.write(kernels(), begin, std::min(tokens, begin + size));
    }
    const KvLayout& layout = c.kv().layout;
    for (int token = 0; token < tokens; ++token) {
      const std::byte* page = c.kv().page(c.pages()[static_cast<size_t>(token / kPageTokens)]);
      for (int head = 0; head < 2; ++head) {
        const auto* k = reinterpret_cast<const uint16_t*>(page + layout.k_offset(head));
        const auto* v = reinterpret_cast<const uint16_t*>(page + layout.v_offset(head));
        for (int dim = 0; dim < 32; ++dim) {
          const size_t idx = static_cast<size_t>((token * 2 + head) * 32 + dim);
          ASSERT_EQ(k[layout.k_index(token % kPageTokens, dim)], half_from_float(dtype, c.k()[idx]))
              << c.k()[idx];
          ASSERT_EQ(v[layout.v_index(token % kPageTokens, dim)], half_from_float(dtype, c.v()[idx]))
              << c.v()[idx];
        }
      }
    }
  }
}

}  // namespace
}  // namespace winnow

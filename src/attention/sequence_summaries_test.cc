#include "attention/sequence_summaries.h"

#include <gtest/gtest.h>

#include "support/attention_case.h"

namespace winnow {
namespace {

constexpr CaseShape kShape{.tokens = 1024, .kv_heads = 2, .head_dim = 16, .sketch_rank = 4};
constexpr SparseRule kRule{.dense_tokens = 256};
constexpr SparseRule kV2Rule{.kind = SparseRuleKind::kV2, .dense_tokens = 256};

class SummariesCase : public AttentionCase {
 public:
  explicit SummariesCase(uint32_t seed) : AttentionCase(kShape, seed) {
    fill_pages(std::byte{0x55});
    write(scalar_kernels(), 0, kShape.tokens);
  }

  const SketchBasis* update(SequenceSummaries& summaries, int num_tokens,
                            const SparseRule& rule = kRule) {
    return summaries.update(0, kv(), pages(), num_tokens, rule, nullptr, pool_, stats_);
  }
  // The means and sketches of a page.
  std::vector<std::byte> summaries_of(int page_idx) const {
    const KvLayout& layout = kv().layout;
    const std::byte* page = kv().page(pages()[static_cast<size_t>(page_idx)]);
    return {page + layout.means_offset(0), page + layout.sketch_offset(layout.kv_heads)};
  }
  bool is_summarized(int page_idx) const {
    const std::vector<std::byte> bytes = summaries_of(page_idx);
    return !std::all_of(bytes.begin(), bytes.end(),
                        [](std::byte b) { return b == std::byte{0x55}; });
  }
  void clear_summaries() {
    for (const PageId id : pages()) {
      std::byte* page = kv().page(id);
      std::fill(page + kv().layout.means_offset(0), page + kv().layout.page_bytes(),
                std::byte{0x55});
    }
  }
  // New keys from a token on.
  void change_from(int token) {
    for (size_t i = static_cast<size_t>(token) * 32; i < k().size(); ++i) k()[i] = -2 * k()[i] + 1;
    write(scalar_kernels(), token, kShape.tokens - token);
  }
  int num_summarized() const {
    int count = 0;
    for (int i = 0; i < 8; ++i) count += is_summarized(i) ? 1 : 0;
    return count;
  }

 private:
  ThreadPool pool_{2};
  AttentionStats stats_;
};

void expect_same_as_fresh(SummariesCase& c, const SketchBasis* basis, int num_pages) {
  std::vector<std::vector<std::byte>> got;
  for (int i = 0; i < num_pages; ++i) got.push_back(c.summaries_of(i));
  const SketchBasis copy = *basis;
  SequenceSummaries fresh(1);
  const SketchBasis* want = c.update(fresh, num_pages * kPageTokens);
  EXPECT_EQ(copy.keys, want->keys);
  EXPECT_EQ(copy.queries, want->queries);
  for (int i = 0; i < num_pages; ++i) {
    EXPECT_EQ(got[static_cast<size_t>(i)], c.summaries_of(i)) << "page " << i;
  }
}

TEST(SequenceSummaries, FullPagesGetTheirSummariesOnce) {
  SummariesCase c(1);
  SequenceSummaries summaries(1);
  c.update(summaries, 300);
  EXPECT_EQ(c.num_summarized(), 2);
  c.clear_summaries();
  c.update(summaries, 640);
  EXPECT_EQ(c.num_summarized(), 3);  // pages 2 to 4; the first two are not written again
  EXPECT_FALSE(c.is_summarized(1));
  EXPECT_TRUE(c.is_summarized(4));
}

TEST(SequenceSummaries, TheBasisStaysAsItWasFirstFitted) {
  SummariesCase c(2);
  SequenceSummaries summaries(1);
  const SketchBasis first = *c.update(summaries, 300);
  EXPECT_EQ(c.update(summaries, 1024)->keys, first.keys);
  SequenceSummaries at_once(1);
  EXPECT_EQ(c.update(at_once, 1024)->keys, first.keys);
}

TEST(SequenceSummaries, ARuleOfMeansHasNoBasis) {
  SummariesCase c(3);
  SequenceSummaries summaries(1);
  EXPECT_EQ(c.update(summaries, 512, kV2Rule), nullptr);
  EXPECT_EQ(c.num_summarized(), 4);
}

TEST(SequenceSummaries, TokensForgottenWithinAPageTakeItsSummaryAlong) {
  for (const int64_t kept : {256, 300, 383, 384, 511, 1000}) {
    SCOPED_TRACE(kept);
    SummariesCase c(4);
    SequenceSummaries summaries(1);
    c.update(summaries, 1024);
    c.clear_summaries();
    summaries.truncate(kept);
    c.change_from(static_cast<int>(kept));
    c.update(summaries, 1024);
    EXPECT_EQ(c.num_summarized(), 8 - kept / kPageTokens);
  }
}

TEST(SequenceSummaries, TokensOfTheBasisForgottenTakeItAlong) {
  SummariesCase c(5);
  SequenceSummaries summaries(1);
  for (const int64_t kept : {255, 128, 0}) {
    SCOPED_TRACE(kept);
    c.update(summaries, 1024);
    summaries.truncate(kept);
    c.change_from(static_cast<int>(kept));
    const SketchBasis* basis = c.update(summaries, 1024);
    expect_same_as_fresh(c, basis, 8);
  }
}

TEST(SequenceSummaries, ForgettingNothingChangesNothing) {
  SummariesCase c(6);
  SequenceSummaries summaries(1);
  c.update(summaries, 1024);
  c.clear_summaries();
  summaries.truncate(1024);
  c.update(summaries, 1024);
  EXPECT_EQ(c.num_summarized(), 0);
}

TEST(SequenceSummaries, SketchesAfterMeansAloneAreWrittenForEveryPage) {
  SummariesCase c(7);
  SequenceSummaries summaries(1);
  c.update(summaries, 1024, kV2Rule);
  summaries.truncate(0);
  expect_same_as_fresh(c, c.update(summaries, 1024), 8);
}

TEST(SequenceSummaries, LayersAreIndependent) {
  SummariesCase c(8);
  SequenceSummaries summaries(2);
  ThreadPool pool(1);
  AttentionStats stats;
  const SketchBasis* first = c.update(summaries, 512);
  c.clear_summaries();
  const SketchBasis* second =
      summaries.update(1, c.kv(), c.pages(), 512, kRule, nullptr, pool, stats);
  EXPECT_NE(first, second);
  EXPECT_EQ(first->keys, second->keys);
  EXPECT_EQ(c.num_summarized(), 4);
}

}  // namespace
}  // namespace winnow

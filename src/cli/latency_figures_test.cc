#include "cli/latency_figures.h"

#include <gtest/gtest.h>

namespace winnow {
namespace {

RequestRecord record_of(double sent, std::vector<double> chunks) {
  RequestRecord record{.asked_prompt_tokens = 10, .sent_s = sent};
  record.ended_s = chunks.empty() ? sent : chunks.back();
  record.chunk_s = std::move(chunks);
  return record;
}

TEST(LatencyFigures, PercentilesLieBetweenNeighboursAsInNumPy) {
  const std::vector<double> values = {1, 2, 3, 4};
  EXPECT_DOUBLE_EQ(percentile(values, 0), 1);
  EXPECT_DOUBLE_EQ(percentile(values, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(percentile(values, 0.9), 3.7);
  EXPECT_DOUBLE_EQ(percentile(values, 0.99), 3.97);
  EXPECT_DOUBLE_EQ(percentile(values, 1), 4);
  EXPECT_DOUBLE_EQ(percentile(std::vector<double>{7}, 0.99), 7);
}

TEST(LatencyFigures, SummariesDoNotNeedSortedValuesOrAny) {
  const LatencySummary summary = summarize({3, 1, 2});
  EXPECT_EQ(summary.count, 3);
  EXPECT_DOUBLE_EQ(summary.mean, 2);
  EXPECT_DOUBLE_EQ(summary.p50, 2);
  EXPECT_DOUBLE_EQ(summary.max, 3);
  EXPECT_EQ(summarize({}).count, 0);
  EXPECT_EQ(summarize({}).p99, 0);
}

TEST(LatencyFigures, LatenciesFollowTheirFormulas) {
  RequestRecord record = record_of(1, {1.5, 1.6, 1.9});
  EXPECT_DOUBLE_EQ(record.ttft_s(), 0.5);
  EXPECT_DOUBLE_EQ(record.e2el_s(), 0.9);
  EXPECT_DOUBLE_EQ(*record.tpot_s(), 0.2);
  // Tokens without text of their own count, too.
  record.completion_tokens = 5;
  EXPECT_DOUBLE_EQ(*record.tpot_s(), 0.1);
  record.completion_tokens = 1;
  EXPECT_FALSE(record.tpot_s());
}

TEST(LatencyFigures, OnlyCompletedRequestsCountAndFailuresCountByKind) {
  std::vector<RequestRecord> records = {record_of(0, {1, 2}), record_of(1, {3}), record_of(2, {}),
                                        record_of(2, {2.5, 4})};
  records[2].failure = {"HTTP 503", "first"};
  records[3].failure = {"cut off", "x"};
  records.push_back(record_of(2, {}));
  records.back().failure = {"HTTP 503", "second"};
  records[0].prompt_tokens = 12;
  records[0].cached_tokens = 8;
  const LoadFigures figures = load_figures(records, {});
  EXPECT_EQ(figures.num_requests, 5);
  EXPECT_EQ(figures.num_completed, 2);
  EXPECT_EQ(figures.input_tokens, 22);
  EXPECT_EQ(figures.cached_tokens, 8);
  EXPECT_EQ(figures.output_tokens, 3);
  EXPECT_EQ(figures.failures.at("HTTP 503").count, 2);
  EXPECT_EQ(figures.failures.at("HTTP 503").example, "first");
  EXPECT_EQ(figures.failures.at("cut off").count, 1);
  EXPECT_DOUBLE_EQ(figures.duration_s, 4);
  EXPECT_DOUBLE_EQ(figures.per_second(figures.num_completed), 0.5);
  EXPECT_EQ(figures.ttft.count, 2);
  EXPECT_DOUBLE_EQ(figures.ttft.mean, 1500);
  EXPECT_EQ(figures.itl.count, 1);
  EXPECT_EQ(figures.tpot.count, 1);
}

TEST(LatencyFigures, ConcurrencyPeaksWhereMostOverlap) {
  const std::vector<RequestRecord> records = {record_of(0, {2}), record_of(1, {3}),
                                              record_of(2, {5}), record_of(3, {4})};
  EXPECT_EQ(load_figures(records, {}).peak_concurrency, 2);
}

TEST(LatencyFigures, GoodRequestsKeepAllLimits) {
  const auto limits = parse_goodput_limits("ttft:1000,tpot:500,e2el:1600", "--goodput");
  ASSERT_TRUE(limits.ok()) << limits.error().message;
  EXPECT_TRUE(limits->met_by(record_of(0, {1, 1.5})));
  EXPECT_FALSE(limits->met_by(record_of(0, {1.01, 1.5})));
  EXPECT_FALSE(limits->met_by(record_of(0, {0.5, 1.01})));
  EXPECT_FALSE(limits->met_by(record_of(0, {0.9, 1.3, 1.7})));
  EXPECT_TRUE(limits->met_by(record_of(0, {0.9})));
  EXPECT_EQ(load_figures(std::vector{record_of(0, {1}), record_of(0, {1.1})}, *limits).num_good, 1);
}

TEST(LatencyFigures, WrongLimitsAreRefusedByName) {
  for (const char* text : {"", "ttft", "ttft:", "ttft:0", "ttft:-1", "ttft:x", "itl:5", "ttft:inf",
                           "ttft:1,ttft:2", "ttft:1,", "tpot:nan"}) {
    const auto limits = parse_goodput_limits(text, "--goodput");
    ASSERT_FALSE(limits.ok()) << text;
    EXPECT_EQ(limits.error().message.find("--goodput: expected "), 0U);
  }
}

}  // namespace
}  // namespace winnow

#include "cli/load_report.h"

#include <gtest/gtest.h>

#include "cli/isolation_report.h"

namespace winnow {
namespace {

RequestRecord answered(double sent, std::vector<double> chunks) {
  RequestRecord record{.asked_prompt_tokens = 10, .sent_s = sent};
  record.ended_s = chunks.back();
  record.chunk_s = std::move(chunks);
  return record;
}

std::vector<RequestRecord> some_records() {
  std::vector<RequestRecord> records = {answered(0, {1, 1.5, 2}), answered(0.5, {2.5, 3})};
  records.push_back({.asked_prompt_tokens = 10, .sent_s = 1, .ended_s = 1});
  records.back().failure = {"HTTP 429", "the queue is full"};
  return records;
}

LoadSetup some_setup() {
  LoadSetup setup{
      .endpoint = "http://h:1", .model = "m", .concurrency = 2, .prompt_tokens = "8:2,9"};
  setup.limits.ttft_ms = 1500;
  return setup;
}

TEST(LoadReport, TextTellsFiguresFormulasAndFailures) {
  const LoadSetup setup = some_setup();
  const std::string text = load_text(setup, load_figures(some_records(), setup.limits));
  for (const char* part :
       {"m at http://h:1: closed loop, 2 at once\n", "of 8:2,9 tokens about, 0 shared, seed 0\n",
        "2 completed of 3", "20 in", "5 out", "0.667 requests/s, 1.67 output tokens/s",
        "0.333 requests/s, 1 requests\n", "TTFT              1500.00", "ITL                500.00",
        "tpot     (e2el - ttft) / (output tokens - 1)", "     1  HTTP 429: the queue is full\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nin\n" << text;
  }
}

TEST(LoadReport, JsonHoldsTheSameAndRecordsWhereWanted) {
  LoadSetup setup = some_setup();
  setup.rate = 2;
  const std::vector<RequestRecord> records = some_records();
  const LoadFigures figures = load_figures(records, setup.limits);
  const boost::json::object plain = load_json(setup, figures, {});
  EXPECT_FALSE(plain.contains("records"));
  EXPECT_EQ(plain.at("rate"), 2.0);
  EXPECT_TRUE(plain.at("concurrency").is_null());
  EXPECT_EQ(plain.at("completed"), 2);
  EXPECT_EQ(plain.at("ttft_ms").at("p50"), 1500.0);
  EXPECT_EQ(plain.at("failures").at(0).at("kind"), "HTTP 429");
  EXPECT_EQ(plain.at("goodput").at("good_requests"), 1);
  EXPECT_TRUE(plain.at("goodput").at("limits").at("tpot_ms").is_null());
  const boost::json::object whole = load_json(setup, figures, records);
  EXPECT_EQ(whole.at("records").at(0).at("chunk_s").at(2), 2.0);
  EXPECT_TRUE(whole.at("records").at(0).at("failure").is_null());
  EXPECT_EQ(whole.at("records").at(2).at("failure").at("message"), "the queue is full");
}

TEST(LoadReport, ARunWithoutAnswersCanBeReported) {
  const std::vector<RequestRecord> records = {some_records().back()};
  LoadSetup setup;
  setup.interrupted = true;
  const std::string text = load_text(setup, load_figures(records, {}));
  EXPECT_NE(text.find("interrupted"), std::string::npos);
  EXPECT_NE(text.find("TTFT                 none"), std::string::npos) << text;
  EXPECT_NE(load_svg(setup, records).find("</svg>"), std::string::npos);
  EXPECT_NE(load_text({}, load_figures({}, {})).find("0 completed of 0"), std::string::npos);
}

TEST(IsolationReport, RatioAndGapsAreTold) {
  IsolationResult result;
  result.streams = {answered(0, {1, 2, 4, 7})};
  result.steady_s = 1;
  result.beside = answered(3, {6});
  result.alone = answered(10, {12});
  const IsolationSetup setup{.endpoint = "e", .model = "m", .num_streams = 1};
  const std::string text = isolation_text(setup, result);
  EXPECT_NE(text.find("TTFT beside the streams  3000.0 ms\n"), std::string::npos) << text;
  EXPECT_NE(text.find("ratio                    1.500\n"), std::string::npos) << text;
  const boost::json::object json = isolation_json(setup, result, false);
  EXPECT_EQ(json.at("ttft_ratio"), 1.5);
  EXPECT_EQ(json.at("gap_before_ms").at("max"), 1000.0);
  EXPECT_EQ(json.at("gap_during_ms").at("count"), 2);
  EXPECT_FALSE(json.contains("records"));
  EXPECT_EQ(isolation_json(setup, result, true).at("records").at("streams").as_array().size(), 1U);
  EXPECT_NE(isolation_svg(setup, result).find("before the long prompt"), std::string::npos);
}

TEST(IsolationReport, APartIsReportedToo) {
  IsolationResult result;
  result.interrupted = true;
  EXPECT_NE(isolation_text({}, result).find("TTFT alone               none"), std::string::npos);
  EXPECT_TRUE(isolation_json({}, result, true).at("ttft_ratio").is_null());
  EXPECT_NE(isolation_svg({}, result).find("</svg>"), std::string::npos);
}

}  // namespace
}  // namespace winnow

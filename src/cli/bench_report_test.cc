#include "cli/bench_report.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace winnow {
namespace {

const BenchSetup kSetup{.commit = "abc",
                        .cpu = "A \"quoted\" CPU",
                        .isa = "avx2",
                        .model_file = "m\xFF.gguf",
                        .model_type = "llama 1M",
                        .model_bytes = 3 << 20,
                        .model_params = 1500000,
                        .chunk_tokens = 512,
                        .num_threads = 2,
                        .kv_type = "bf16",
                        .peak_memory_bytes = 7};
const std::vector<BenchRow> kRows = {
    {.prompt_tokens = 512, .attention = "v2 alpha 0.1", .samples_ns = {1e9, 2e9}},
    {.generated_tokens = 64, .depth_tokens = 4096, .samples_ns = {2e9}}};
const BenchRow kStreams = {.generated_tokens = 64, .num_streams = 16, .samples_ns = {2e9}};

TEST(BenchReport, RowsAreNamedAsLlamaBenchNamesThem) {
  EXPECT_EQ(kRows[0].name(), "pp512");
  EXPECT_EQ(kRows[1].name(), "tg64 @ d4096");
  EXPECT_EQ(kStreams.name(), "tg64 x 16");
}

TEST(BenchReport, TheSpeedOfSeveralStreamsIsThatOfAllTogether) {
  EXPECT_EQ(kStreams.tokens_per_second(), std::vector<double>{512});
  const boost::json::value json = boost::json::parse(bench_json(kSetup, {kStreams}));
  EXPECT_EQ(json.at(0).at("n_streams").as_int64(), 16);
}

TEST(BenchReport, JsonIsValidAndHoldsTheSpeeds) {
  const boost::json::value json = boost::json::parse(bench_json(kSetup, kRows));
  const auto& first = json.at(0).as_object();
  EXPECT_DOUBLE_EQ(first.at("avg_ts").as_double(), (512 + 256) / 2.0);
  EXPECT_EQ(first.at("n_prompt").as_int64(), 512);
  EXPECT_EQ(first.at("n_gen").as_int64(), 0);
  EXPECT_EQ(first.at("model_filename").as_string(), "m\xEF\xBF\xBD.gguf");
  EXPECT_DOUBLE_EQ(json.at(1).at("avg_ts").as_double(), 32);
  EXPECT_EQ(json.at(1).at("n_depth").as_int64(), 4096);
}

TEST(BenchReport, MarkdownHasOneLinePerRow) {
  EXPECT_EQ(
      bench_markdown(kSetup, kRows),
      "| model | size | params | backend | threads | attention | test | t/s |\n"
      "| --- | ---: | ---: | --- | ---: | --- | ---: | ---: |\n"
      "| llama 1M | 3.00 MiB | 1.50 M | CPU avx2 | 2 | v2 alpha 0.1 | pp512 | 384.00 \xC2\xB1 "
      "181.02 |\n"
      "| llama 1M | 3.00 MiB | 1.50 M | CPU avx2 | 2 | dense | tg64 @ d4096 | 32.00 \xC2\xB1 0.00 "
      "|\n");
}

TEST(BenchReport, CsvQuotesItsFields) {
  const std::string csv = bench_csv(kSetup, kRows);
  EXPECT_EQ(csv.substr(0, 22), "build_commit,cpu_info,");
  EXPECT_NE(csv.find("\"A \"\"quoted\"\" CPU\""), std::string::npos);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
}

}  // namespace
}  // namespace winnow

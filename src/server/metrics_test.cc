#include "server/metrics.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "support/test_server.h"

namespace winnow {
namespace {

using test::chat_body;
using test::TestServer;

// "name type" of every metric in an exposition.
std::set<std::string> names_in(const std::string& text) {
  std::set<std::string> names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) names.insert(line.substr(7));
  }
  return names;
}

// The value of the line that begins with `name`; -1 if there is none.
double value_of(const std::string& text, const std::string& name) {
  const size_t at = text.find("\n" + name);
  if (at == std::string::npos) return -1;
  const size_t end = text.find('\n', at + 1);
  const size_t blank = text.rfind(' ', end);
  return std::stod(text.substr(blank + 1, end - blank - 1));
}

// Dashboards and routers read these: names are added, never changed.
TEST(Metrics, NamesAreFrozen) {
  TestServer server;
  server.post("/v1/chat/completions", chat_body());
  const std::set<std::string> expected = {
      "vllm:num_requests_running gauge",
      "vllm:num_requests_waiting gauge",
      "vllm:kv_cache_usage_perc gauge",
      "vllm:prefix_cache_queries_total counter",
      "vllm:prefix_cache_hits_total counter",
      "vllm:num_preemptions_total counter",
      "vllm:time_to_first_token_seconds histogram",
      "vllm:inter_token_latency_seconds histogram",
      "vllm:request_time_per_output_token_seconds histogram",
      "vllm:e2e_request_latency_seconds histogram",
      "vllm:request_queue_time_seconds histogram",
      "vllm:request_prefill_time_seconds histogram",
      "vllm:request_decode_time_seconds histogram",
      "vllm:request_inference_time_seconds histogram",
      "vllm:prompt_tokens_total counter",
      "vllm:generation_tokens_total counter",
      "vllm:request_prompt_tokens histogram",
      "vllm:request_generation_tokens histogram",
      "vllm:request_prefill_kv_computed_tokens histogram",
      "vllm:prompt_tokens_by_source_total counter",
      "vllm:request_success_total counter",
      "vllm:cache_config_info gauge",
      "winnow_kv_pages gauge",
      "winnow_kv_pages_total_count gauge",
      "winnow_saved_prefix_loaded_tokens_total counter",
      "winnow_steps_total counter",
      "winnow_step_seconds histogram",
      "winnow_prefill_chunk_seconds histogram",
      "winnow_attention_pairs_kept_total counter",
      "winnow_attention_pairs_dense_total counter",
      "winnow_dense_prompts_total counter",
      "winnow_seconds_in_step gauge",
      "winnow_engine_up gauge",
      "winnow_http_connections gauge",
      "winnow_http_connections_accepted_total counter",
      "winnow_http_connections_refused_total counter",
      "winnow_http_timeouts_total counter",
      "winnow_http_clients_left_total counter",
      "winnow_http_requests_total counter",
  };
  const test::ClientReply reply = server.get("/metrics");
  EXPECT_EQ(reply.header("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(names_in(reply.body), expected);
}

TEST(Metrics, RequestsAreCounted) {
  TestServer server;
  const std::string labels = "{engine=\"0\",model_name=\"tiny\"";
  for (int i = 0; i < 3; ++i) server.post("/v1/chat/completions", chat_body());
  server.get("/nothing");
  const std::string text = server.get("/metrics").body;
  EXPECT_EQ(value_of(text, "vllm:request_success_total" + labels + ",finished_reason=\"stop\"}"), 3)
      << text;
  EXPECT_EQ(value_of(text, "vllm:request_success_total" + labels + ",finished_reason=\"abort\"}"),
            0);
  EXPECT_EQ(value_of(text, "vllm:time_to_first_token_seconds_count"), 3);
  EXPECT_EQ(value_of(text, "vllm:time_to_first_token_seconds_sum"), 3 * 0.375);
  EXPECT_GT(value_of(text, "vllm:generation_tokens_total"), 0);
  EXPECT_EQ(value_of(text, "winnow_http_requests_total" + labels + ",status=\"404\"}"), 1);
}

TEST(Metrics, PagesAddUp) {  // kv-gauge-separates-live-and-cached
  TestServer server;
  const std::string text = server.get("/metrics").body;
  double sum = 0;
  for (const char* state : {"live", "cached", "free"}) {
    const double count =
        value_of(text, "winnow_kv_pages{engine=\"0\",model_name=\"tiny\",state=\"" +
                           std::string(state) + "\"}");
    EXPECT_GE(count, 0) << state;
    sum += count;
  }
  EXPECT_EQ(sum, value_of(text, "winnow_kv_pages_total_count"));
  EXPECT_NE(text.find("num_gpu_blocks=\"64\""), std::string::npos);
}

}  // namespace
}  // namespace winnow

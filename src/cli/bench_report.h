// The rows of `winnow bench` as Markdown, JSON and CSV, with llama-bench's column names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace winnow {

// What all rows of one run share.
struct BenchSetup {
  std::string commit = {};
  std::string cpu = {};
  std::string isa = {};
  std::string model_file = {};
  std::string model_type = {};  // "llama 135M Q4_1": architecture, weights, their most common type
  int64_t model_bytes = 0;
  int64_t model_params = 0;
  int64_t chunk_tokens = 0;
  int num_threads = 0;
  std::string kv_type = {};
  int64_t peak_memory_bytes = 0;
};

struct BenchRow {
  int64_t prompt_tokens = 0;
  int64_t generated_tokens = 0;
  int64_t depth_tokens = 0;         // already in the cache
  int64_t num_streams = 0;          // answers made side by side; 0 = one, alone in its engine
  std::string attention = "dense";  // of the rows that were measured
  std::string time = {};            // start, UTC
  std::vector<double> samples_ns = {};

  // "pp512", "tg64", "pp512 @ d4096", "tg64 x 16 @ d4096"
  std::string name() const;
  // Of all streams together.
  std::vector<double> tokens_per_second() const;
};

std::string bench_markdown(const BenchSetup& setup, const std::vector<BenchRow>& rows);
std::string bench_json(const BenchSetup& setup, const std::vector<BenchRow>& rows);
std::string bench_csv(const BenchSetup& setup, const std::vector<BenchRow>& rows);

}  // namespace winnow

#include "cli/bench_report.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "cli/formatted.h"
#include "cli/json_output.h"
#include "cli/statistics.h"

namespace winnow {
namespace {

boost::json::object row_json(const BenchSetup& setup, const BenchRow& row) {
  const std::vector<double> speeds = row.tokens_per_second();
  return {{"build_commit", json_text(setup.commit)},
          {"cpu_info", json_text(setup.cpu)},
          {"isa", json_text(setup.isa)},
          {"model_filename", json_text(setup.model_file)},
          {"model_type", json_text(setup.model_type)},
          {"model_size", setup.model_bytes},
          {"model_n_params", setup.model_params},
          {"n_batch", setup.chunk_tokens},
          {"n_ubatch", setup.chunk_tokens},
          {"n_threads", setup.num_threads},
          {"type_k", json_text(setup.kv_type)},
          {"type_v", json_text(setup.kv_type)},
          {"attention", json_text(row.attention)},
          {"n_prompt", row.prompt_tokens},
          {"n_gen", row.generated_tokens},
          {"n_depth", row.depth_tokens},
          {"n_streams", row.num_streams},
          {"test_time", json_text(row.time)},
          {"avg_ns", mean(row.samples_ns)},
          {"stddev_ns", standard_deviation(row.samples_ns)},
          {"avg_ts", mean(speeds)},
          {"stddev_ts", standard_deviation(speeds)},
          {"peak_memory_bytes", setup.peak_memory_bytes},
          {"samples_ns", boost::json::array(row.samples_ns.begin(), row.samples_ns.end())},
          {"samples_ts", boost::json::array(speeds.begin(), speeds.end())}};
}

// A CSV field: quoted, quotes doubled.
std::string csv_field(const boost::json::value& value) {
  std::string text;
  if (value.is_string()) {
    text = value.as_string().c_str();
  } else {
    text = json_line(value);
    text.pop_back();
  }
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) line += (line.empty() ? "" : ",") + field;
  return line + "\n";
}

}  // namespace

std::string BenchRow::name() const {
  std::string text = prompt_tokens > 0 ? "pp" + std::to_string(prompt_tokens)
                                       : "tg" + std::to_string(generated_tokens);
  if (num_streams > 0) text += " x " + std::to_string(num_streams);
  if (depth_tokens > 0) text += " @ d" + std::to_string(depth_tokens);
  return text;
}

std::vector<double> BenchRow::tokens_per_second() const {
  std::vector<double> speeds;
  const auto tokens =
      static_cast<double>((prompt_tokens + generated_tokens) * std::max<int64_t>(1, num_streams));
  for (const double ns : samples_ns) speeds.push_back(ns > 0 ? tokens * 1e9 / ns : 0);
  return speeds;
}

std::string bench_markdown(const BenchSetup& setup, const std::vector<BenchRow>& rows) {
  std::string text =
      "| model | size | params | backend | threads | attention | test | t/s |\n"
      "| --- | ---: | ---: | --- | ---: | --- | ---: | ---: |\n";
  for (const BenchRow& row : rows) {
    const std::vector<double> speeds = row.tokens_per_second();
    text += "| " + setup.model_type +
            formatted(" | %.2f MiB | %.2f M | CPU %s | %d | %s | %s | %.2f \xC2\xB1 %.2f |\n",
                      static_cast<double>(setup.model_bytes) / 0x1p20,
                      static_cast<double>(setup.model_params) / 1e6, setup.isa.c_str(),
                      setup.num_threads, row.attention.c_str(), row.name().c_str(), mean(speeds),
                      standard_deviation(speeds));
  }
  return text;
}

std::string bench_json(const BenchSetup& setup, const std::vector<BenchRow>& rows) {
  boost::json::array array;
  for (const BenchRow& row : rows) array.push_back(row_json(setup, row));
  return json_line(array);
}

std::string bench_csv(const BenchSetup& setup, const std::vector<BenchRow>& rows) {
  std::string text;
  for (const BenchRow& row : rows) {
    std::vector<std::string> names;
    std::vector<std::string> fields;
    for (const auto& member : row_json(setup, row)) {
      if (member.value().is_array()) continue;  // a field holds one value
      names.emplace_back(member.key());
      fields.push_back(csv_field(member.value()));
    }
    if (text.empty()) text = csv_line(names);
    text += csv_line(fields);
  }
  return text;
}

}  // namespace winnow

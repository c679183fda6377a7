#include "cli/load_report.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <limits>

#include "cli/formatted.h"
#include "cli/json_output.h"
#include "cli/latency_plot.h"

namespace winnow {
namespace {

namespace json = boost::json;

struct Formula {
  const char* name;
  const char* text;
};
constexpr Formula kFormulas[] = {
    {"ttft", "request sent to first chunk"},
    {"tpot", "(e2el - ttft) / (output tokens - 1), one per request of 2 tokens or more"},
    {"itl", "every gap between two chunks of a request"},
    {"e2el", "request sent to last chunk that carries a token"},
    {"goodput", "completed requests that keep all limits, per second of the run"},
};

template <class T>
json::value number_or_null(const std::optional<T>& value) {
  return value ? json::value(*value) : json::value();
}

std::string arrivals(const LoadSetup& setup) {
  if (setup.rate) return formatted("open loop, %g requests/s, Poisson", *setup.rate);
  return formatted("closed loop, %lld at once", static_cast<long long>(setup.concurrency));
}

std::string failure_lines(const LoadFigures& figures) {
  std::string text;
  for (const auto& [kind, failures] : figures.failures) {
    text += formatted("%6lld  ", static_cast<long long>(failures.count)) + kind + ": " +
            failures.example + "\n";
  }
  return text;
}

json::object limits_json(const GoodputLimits& limits) {
  return {{"ttft_ms", number_or_null(limits.ttft_ms)},
          {"tpot_ms", number_or_null(limits.tpot_ms)},
          {"e2el_ms", number_or_null(limits.e2el_ms)}};
}

json::array failures_json(const LoadFigures& figures) {
  json::array list;
  for (const auto& [kind, failures] : figures.failures) {
    list.push_back({{"kind", json_text(kind)},
                    {"count", failures.count},
                    {"example", json_text(failures.example)}});
  }
  return list;
}

}  // namespace

json::object latency_formulas() {
  json::object formulas;
  for (const Formula& formula : kFormulas) formulas[formula.name] = formula.text;
  return formulas;
}

json::object summary_json(const LatencySummary& summary) {
  return {{"count", summary.count}, {"mean", summary.mean}, {"p50", summary.p50},
          {"p90", summary.p90},     {"p99", summary.p99},   {"max", summary.max}};
}

json::object record_json(const RequestRecord& record) {
  json::object object = {{"asked_prompt_tokens", record.asked_prompt_tokens},
                         {"sent_s", record.sent_s},
                         {"ended_s", number_or_null(record.ended_s)},
                         {"prompt_tokens", number_or_null(record.prompt_tokens)},
                         {"cached_tokens", number_or_null(record.cached_tokens)},
                         {"completion_tokens", number_or_null(record.completion_tokens)},
                         {"chunk_s", json::array(record.chunk_s.begin(), record.chunk_s.end())},
                         {"failure", nullptr}};
  if (record.failure) {
    object["failure"] = {{"kind", json_text(record.failure->kind)},
                         {"message", json_text(record.failure->message)}};
  }
  return object;
}

std::string summary_head() {
  return formatted("%-14s %10s %10s %10s %10s %10s\n", "ms", "mean", "p50", "p90", "p99", "max");
}

std::string summary_line(const std::string& name, const LatencySummary& summary) {
  if (summary.count == 0) return formatted("%-14s %10s\n", name.c_str(), "none");
  return formatted("%-14s %10.2f %10.2f %10.2f %10.2f %10.2f\n", name.c_str(), summary.mean,
                   summary.p50, summary.p90, summary.p99, summary.max);
}

std::string load_text(const LoadSetup& setup, const LoadFigures& figures) {
  const auto number = [](int64_t value) { return static_cast<long long>(value); };
  std::string text = setup.model + " at " + setup.endpoint + ": " + arrivals(setup) +
                     (setup.interrupted ? ", interrupted\n" : "\n");
  text += "prompts        of " + setup.prompt_tokens +
          (setup.exact_prompts ? " tokens" : " tokens about") +
          formatted(", %lld shared, seed %llu\n", number(setup.shared_prefix_tokens),
                    static_cast<unsigned long long>(setup.seed));
  text += formatted("requests       %lld completed of %lld, at most %lld at once, in %.2f s\n",
                    number(figures.num_completed), number(figures.num_requests),
                    number(figures.peak_concurrency), figures.duration_s);
  text += formatted("tokens         %lld in (%lld of them cached), %lld out\n",
                    number(figures.input_tokens), number(figures.cached_tokens),
                    number(figures.output_tokens));
  text += formatted("throughput     %.3f requests/s, %.2f output tokens/s, %.2f tokens/s in all\n",
                    figures.per_second(figures.num_completed),
                    figures.per_second(figures.output_tokens),
                    figures.per_second(figures.input_tokens + figures.output_tokens));
  if (setup.limits.any()) {
    text += formatted("goodput        %.3f requests/s, %lld requests\n",
                      figures.per_second(figures.num_good), number(figures.num_good));
  }
  text += "\n" + summary_head() + summary_line("TTFT", figures.ttft) +
          summary_line("TPOT", figures.tpot) + summary_line("ITL", figures.itl) +
          summary_line("E2EL", figures.e2el) + "\n";
  for (const Formula& formula : kFormulas) {
    text += formatted("%-7s  ", formula.name) + formula.text + "\n";
  }
  if (!figures.failures.empty()) text += "\nfailed\n" + failure_lines(figures);
  return text;
}

json::object load_json(const LoadSetup& setup, const LoadFigures& figures,
                       std::span<const RequestRecord> records) {
  json::object object = {
      {"endpoint", json_text(setup.endpoint)},
      {"model", json_text(setup.model)},
      {"rate", number_or_null(setup.rate)},
      {"concurrency", setup.rate ? json::value() : json::value(setup.concurrency)},
      {"prompt_tokens", json_text(setup.prompt_tokens)},
      {"prompts", setup.exact_prompts ? "ids" : "text"},
      {"shared_prefix_tokens", setup.shared_prefix_tokens},
      {"max_tokens", setup.max_tokens},
      {"seed", setup.seed},
      {"interrupted", setup.interrupted},
      {"formulas", latency_formulas()},
      {"requests", figures.num_requests},
      {"completed", figures.num_completed},
      {"failures", failures_json(figures)},
      {"peak_concurrency", figures.peak_concurrency},
      {"duration_s", figures.duration_s},
      {"total_input_tokens", figures.input_tokens},
      {"total_cached_tokens", figures.cached_tokens},
      {"total_output_tokens", figures.output_tokens},
      {"request_throughput", figures.per_second(figures.num_completed)},
      {"output_throughput", figures.per_second(figures.output_tokens)},
      {"total_token_throughput", figures.per_second(figures.input_tokens + figures.output_tokens)},
      {"ttft_ms", summary_json(figures.ttft)},
      {"tpot_ms", summary_json(figures.tpot)},
      {"itl_ms", summary_json(figures.itl)},
      {"e2el_ms", summary_json(figures.e2el)}};
  if (setup.limits.any()) {
    object["goodput"] = {{"limits", limits_json(setup.limits)},
                         {"good_requests", figures.num_good},
                         {"request_goodput", figures.per_second(figures.num_good)}};
  }
  if (!records.empty()) {
    json::array list;
    for (const RequestRecord& record : records) list.push_back(record_json(record));
    object["records"] = std::move(list);
  }
  return object;
}

std::string load_svg(const LoadSetup& setup, std::span<const RequestRecord> records) {
  LatencyPlot plot{.title = setup.model + ", " + arrivals(setup),
                   .distribution_label = "time to first token, ms",
                   .distributions = {{"TTFT", {}}},
                   .gaps_label = "inter-token latency, ms",
                   .gaps = {}};
  double begin = std::numeric_limits<double>::infinity();
  for (const RequestRecord& record : records) begin = std::min(begin, record.sent_s);
  for (const RequestRecord& record : records) {
    if (!record.completed()) continue;
    plot.distributions.front().values_ms.push_back(record.ttft_s() * 1e3);
    for (size_t i = 1; i < record.chunk_s.size(); ++i) {
      plot.gaps.push_back(
          {record.chunk_s[i] - begin, (record.chunk_s[i] - record.chunk_s[i - 1]) * 1e3});
    }
  }
  return latency_svg(plot);
}

}  // namespace winnow

#include "cli/isolation_report.h"

#include <boost/json/array.hpp>

#include "cli/formatted.h"
#include "cli/json_output.h"
#include "cli/latency_plot.h"
#include "cli/load_report.h"

namespace winnow {
namespace {

namespace json = boost::json;

std::optional<double> ttft_ms(const std::optional<RequestRecord>& record) {
  if (!record || !record->completed()) return std::nullopt;
  return record->ttft_s() * 1e3;
}

json::value number_or_null(const std::optional<double>& value) {
  return value ? json::value(*value) : json::value();
}

std::optional<double> ttft_ratio(const IsolationResult& result) {
  const std::optional<double> beside = ttft_ms(result.beside);
  const std::optional<double> alone = ttft_ms(result.alone);
  if (!beside || !alone || !(*alone > 0)) return std::nullopt;
  return *beside / *alone;
}

std::string ttft_text(const std::optional<RequestRecord>& record) {
  const std::optional<double> ms = ttft_ms(record);
  if (!ms) return "none";
  std::string text = formatted("%.1f ms", *ms);
  if (record->cached_tokens.value_or(0) > 0) {
    text += formatted(" (%lld tokens cached)", static_cast<long long>(*record->cached_tokens));
  }
  return text;
}

}  // namespace

std::string isolation_text(const IsolationSetup& setup, const IsolationResult& result) {
  std::string text = setup.model + " at " + setup.endpoint +
                     formatted(": a prompt of %lld tokens beside %lld streams, seed %llu%s\n\n",
                               static_cast<long long>(setup.long_prompt_tokens),
                               static_cast<long long>(setup.num_streams),
                               static_cast<unsigned long long>(setup.seed),
                               result.interrupted ? ", interrupted" : "");
  text += summary_head() + summary_line("gaps before", summarize(result.gaps_before_ms())) +
          summary_line("gaps during", summarize(result.gaps_during_ms())) + "\n";
  text += "TTFT beside the streams  " + ttft_text(result.beside) + "\n";
  text += "TTFT alone               " + ttft_text(result.alone) + "\n";
  if (const std::optional<double> ratio = ttft_ratio(result)) {
    text += formatted("ratio                    %.3f\n", *ratio);
  }
  if (const int64_t early = result.num_ended_early(); early > 0) {
    text += formatted("%lld streams ended before the long prompt's first token\n",
                      static_cast<long long>(early));
  }
  return text;
}

json::object isolation_json(const IsolationSetup& setup, const IsolationResult& result,
                            bool with_records) {
  json::object object = {{"scenario", "isolation"},
                         {"endpoint", json_text(setup.endpoint)},
                         {"model", json_text(setup.model)},
                         {"streams", setup.num_streams},
                         {"long_prompt_tokens", setup.long_prompt_tokens},
                         {"prompts", setup.exact_prompts ? "ids" : "text"},
                         {"seed", setup.seed},
                         {"interrupted", result.interrupted},
                         {"formulas", latency_formulas()},
                         {"gap_before_ms", summary_json(summarize(result.gaps_before_ms()))},
                         {"gap_during_ms", summary_json(summarize(result.gaps_during_ms()))},
                         {"ttft_beside_ms", number_or_null(ttft_ms(result.beside))},
                         {"ttft_alone_ms", number_or_null(ttft_ms(result.alone))},
                         {"ttft_ratio", number_or_null(ttft_ratio(result))},
                         {"streams_ended_early", result.num_ended_early()}};
  if (!with_records) return object;
  json::array streams;
  for (const RequestRecord& stream : result.streams) streams.push_back(record_json(stream));
  object["records"] = {
      {"streams", std::move(streams)},
      {"beside", result.beside ? json::value(record_json(*result.beside)) : json::value()},
      {"alone", result.alone ? json::value(record_json(*result.alone)) : json::value()}};
  return object;
}

std::string isolation_svg(const IsolationSetup& setup, const IsolationResult& result) {
  LatencyPlot plot{
      .title = setup.model + formatted(", a prompt of %lld tokens beside %lld streams",
                                       static_cast<long long>(setup.long_prompt_tokens),
                                       static_cast<long long>(setup.num_streams)),
      .distribution_label = "gap between tokens of a stream, ms",
      .distributions = {{"before the long prompt", result.gaps_before_ms()},
                        {"during", result.gaps_during_ms()}},
      .gaps_label = "gap, ms",
      .gaps = {}};
  for (const RequestRecord& stream : result.streams) {
    for (size_t i = 1; i < stream.chunk_s.size(); ++i) {
      if (stream.chunk_s[i - 1] < result.steady_s) continue;
      plot.gaps.push_back(
          {stream.chunk_s[i] - result.steady_s, (stream.chunk_s[i] - stream.chunk_s[i - 1]) * 1e3});
    }
  }
  return latency_svg(plot);
}

}  // namespace winnow

#include "cli/latency_figures.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "base/escape.h"

namespace winnow {
namespace {

bool within(double seconds, const std::optional<double>& limit_ms) {
  return !limit_ms || seconds * 1e3 <= *limit_ms;
}

// Most requests under way at one moment; one that ends as another begins does not count beside it.
int64_t peak_concurrency(std::span<const RequestRecord> records) {
  std::vector<std::pair<double, int>> changes;
  for (const RequestRecord& record : records) {
    if (!record.ended_s) continue;
    changes.emplace_back(record.sent_s, 1);
    changes.emplace_back(*record.ended_s, -1);
  }
  std::sort(changes.begin(), changes.end());
  int64_t running = 0;
  int64_t peak = 0;
  for (const auto& [time, change] : changes) {
    running += change;
    peak = std::max(peak, running);
  }
  return peak;
}

}  // namespace

double percentile(std::span<const double> values, double share) {
  const double rank = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(rank);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (rank - std::floor(rank)) * (values[above] - values[below]);
}

LatencySummary summarize(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {.count = std::ssize(values),
          .mean = sum / static_cast<double>(values.size()),
          .p50 = percentile(values, 0.5),
          .p90 = percentile(values, 0.9),
          .p99 = percentile(values, 0.99),
          .max = values.back()};
}

bool GoodputLimits::met_by(const RequestRecord& record) const {
  return within(record.ttft_s(), ttft_ms) && within(record.tpot_s().value_or(0), tpot_ms) &&
         within(record.e2el_s(), e2el_ms);
}

Result<GoodputLimits> parse_goodput_limits(std::string_view text, const std::string& name) {
  GoodputLimits limits;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t colon = std::min(part.find(':'), part.size());
    const std::string_view key = part.substr(0, colon);
    std::optional<double>* limit = key == "ttft"   ? &limits.ttft_ms
                                   : key == "tpot" ? &limits.tpot_ms
                                   : key == "e2el" ? &limits.e2el_ms
                                                   : nullptr;
    const std::string_view number =
        colon < part.size() ? part.substr(colon + 1) : part.substr(0, 0);
    double value = 0;
    const auto [stopped, error] =
        std::from_chars(number.data(), number.data() + number.size(), value);
    const bool whole = error == std::errc() && stopped == number.data() + number.size();
    if (limit == nullptr || limit->has_value() || !whole || !(value > 0) || std::isinf(value)) {
      return fail(ErrorCode::kInvalidArgument,
                  "%s: expected ttft:MS, tpot:MS or e2el:MS with milliseconds above 0, each once, "
                  "found '%s'",
                  name.c_str(), escaped(part, 60).c_str());
    }
    *limit = value;
  }
  return limits;
}

LoadFigures load_figures(std::span<const RequestRecord> records, const GoodputLimits& limits) {
  LoadFigures figures;
  std::vector<double> ttft;
  std::vector<double> tpot;
  std::vector<double> itl;
  std::vector<double> e2el;
  double begin = 0;
  double end = 0;
  for (const RequestRecord& record : records) {
    begin = figures.num_requests == 0 ? record.sent_s : std::min(begin, record.sent_s);
    end = std::max(end, record.ended_s.value_or(0));
    ++figures.num_requests;
    if (record.failure) {
      FailureCount& failures = figures.failures[record.failure->kind];
      if (failures.count++ == 0) failures.example = record.failure->message;
    }
    if (!record.completed()) continue;
    ++figures.num_completed;
    figures.input_tokens += record.input_tokens();
    figures.cached_tokens += record.cached_tokens.value_or(0);
    figures.output_tokens += record.output_tokens();
    ttft.push_back(record.ttft_s() * 1e3);
    e2el.push_back(record.e2el_s() * 1e3);
    if (const std::optional<double> value = record.tpot_s()) tpot.push_back(*value * 1e3);
    for (size_t i = 1; i < record.chunk_s.size(); ++i) {
      itl.push_back((record.chunk_s[i] - record.chunk_s[i - 1]) * 1e3);
    }
    figures.num_good += limits.met_by(record) ? 1 : 0;
  }
  figures.duration_s = std::max(0.0, end - begin);
  figures.peak_concurrency = peak_concurrency(records);
  figures.ttft = summarize(std::move(ttft));
  figures.tpot = summarize(std::move(tpot));
  figures.itl = summarize(std::move(itl));
  figures.e2el = summarize(std::move(e2el));
  return figures;
}

}  // namespace winnow

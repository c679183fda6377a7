// A load run as text, JSON and a picture.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "cli/latency_figures.h"
#include "cli/request_record.h"

namespace winnow {

struct LoadSetup {
  std::string endpoint = {};
  std::string model = {};
  std::optional<double> rate = {};
  int64_t concurrency = 1;         // without a rate
  std::string prompt_tokens = {};  // the mix as it was asked for
  bool exact_prompts = false;      // token ids, not text
  int64_t shared_prefix_tokens = 0;
  int64_t max_tokens = 0;
  uint64_t seed = 0;
  GoodputLimits limits = {};
  bool interrupted = false;
};

// Names vLLM's formulas, in which all figures are told.
boost::json::object latency_formulas();
boost::json::object summary_json(const LatencySummary& summary);
boost::json::object record_json(const RequestRecord& record);
// "name   mean   p50   p90   p99   max" and such lines, in milliseconds.
std::string summary_head();
std::string summary_line(const std::string& name, const LatencySummary& summary);

std::string load_text(const LoadSetup& setup, const LoadFigures& figures);
// With every request under "records" if there are any in `records`.
boost::json::object load_json(const LoadSetup& setup, const LoadFigures& figures,
                              std::span<const RequestRecord> records);
std::string load_svg(const LoadSetup& setup, std::span<const RequestRecord> records);

}  // namespace winnow

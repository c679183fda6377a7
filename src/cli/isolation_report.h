// The isolation scenario as text, JSON and a picture.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "cli/isolation_run.h"

namespace winnow {

struct IsolationSetup {
  std::string endpoint = {};
  std::string model = {};
  int64_t num_streams = 0;
  int64_t long_prompt_tokens = 0;
  bool exact_prompts = false;
  uint64_t seed = 0;
};

std::string isolation_text(const IsolationSetup& setup, const IsolationResult& result);
// With every request under "records" if `with_records`.
boost::json::object isolation_json(const IsolationSetup& setup, const IsolationResult& result,
                                   bool with_records);
std::string isolation_svg(const IsolationSetup& setup, const IsolationResult& result);

}  // namespace winnow

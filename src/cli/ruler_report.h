// How well a model does RULER's tasks, with dense and with sparse attention, and how sure that is.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attention/attention_stats.h"

namespace winnow {

// Share of the references that occur in the answer, whatever the case of ASCII letters. Requires
// at least one.
double ruler_score(std::string_view answer, std::span<const std::string> references);

struct Interval {
  double low = 0;
  double high = 0;
};

// The bootstrap's 95 % interval of the mean of the groups' means, by drawing anew within each
// group; the seed is fixed. Requires that no group is empty.
Interval bootstrap_interval(std::span<const std::vector<double>> groups);

struct RulerResult {
  std::string_view task = {};
  int64_t num_tokens = 0;  // of the prompt
  std::vector<std::string> references = {};
  std::string dense_answer = {};
  std::string sparse_answer = {};
  double dense_score = 0;
  double sparse_score = 0;
  AttentionStats sparse = {};
};

// {"tasks": [{"task", "samples", "dense", "sparse", "difference", "low", "high"}], "all": {...},
// "solved": {...}, "density", "effective_density", "samples": [...]}. Scores are from 0 to 100;
// "solved" covers the tasks of which dense attention solves more than half.
boost::json::object ruler_json(std::span<const RulerResult> results);
std::string ruler_table(std::span<const RulerResult> results);

}  // namespace winnow

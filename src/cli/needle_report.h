// What a model found of planted numbers, with dense and with sparse attention.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attention/attention_stats.h"

namespace winnow {

enum class NeedleKind { kAskedAfter, kRecalledInside };

// One number. A token of several digits counts as one digit.
struct NeedleCell {
  NeedleKind kind = NeedleKind::kAskedAfter;
  double depth = 0;  // share of the prompt before it
  int64_t num_digits = 0;
  int64_t dense_right = 0;  // digits
  int64_t sparse_right = 0;
};

struct NeedleResult {
  std::string name = {};  // of the prompt: its seed or file
  int64_t num_tokens = 0;
  std::vector<NeedleCell> cells = {};
  AttentionStats dense = {};
  AttentionStats sparse = {};
};

// Numbers added up over cells.
struct NeedleTally {
  int64_t num_needles = 0;
  int64_t num_exact = 0;  // all digits right
  int64_t num_digits = 0;
  int64_t num_digits_right = 0;
};
NeedleTally tally(std::span<const NeedleCell> cells, NeedleKind kind, bool sparse);

// {"lengths": [{"length", "prompts", "dense": {"after", "inside", "density", "effective_density"},
// "sparse": {...}}], "cells": [...]}.
boost::json::object needle_json(std::span<const NeedleResult> results);
// A row per length and way of attending.
std::string needle_table(std::span<const NeedleResult> results);
// Share of digits right by length and depth, for either kind and either way of attending.
std::string needle_svg(std::span<const NeedleResult> results);

}  // namespace winnow

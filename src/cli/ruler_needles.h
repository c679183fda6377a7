// The samples of RULER's needle tasks.
#pragma once

#include "cli/ruler_tasks.h"

namespace winnow {

enum class NeedleHaystack { kNoise, kEssay, kNeedles };
enum class NeedleWord { kName, kNumber, kUuid };

struct NeedleTask {
  NeedleHaystack haystack = NeedleHaystack::kEssay;
  NeedleWord key = NeedleWord::kName;
  NeedleWord value = NeedleWord::kNumber;
  size_t num_keys = 1;
  size_t num_values = 1;   // of each key
  size_t num_queried = 1;  // keys
};

RulerSample make_needle_sample(const NeedleTask& task, const RulerSize& size, RandomStream random);

// `lines` with `planted`, in this order, at places drawn from `random`; one line each.
std::string with_planted_lines(const std::vector<std::string>& lines,
                               const std::vector<std::string>& planted, RandomStream& random);
// The line that haystacks of noise repeat.
std::string_view noise_line();

}  // namespace winnow

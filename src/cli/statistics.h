#pragma once

#include <span>

namespace winnow {

// 0 of no values.
double mean(std::span<const double> values);
// Of a sample: divides by n - 1; 0 for fewer than two values.
double standard_deviation(std::span<const double> values);

}  // namespace winnow

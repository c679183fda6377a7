#pragma once

#include <limits>

namespace winnow {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
// The largest relative error of one rounding.
inline constexpr double kEpsilon = 0x1p-24;

}  // namespace winnow

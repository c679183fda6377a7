#include "model/rope_table.h"

#include <cmath>

#include "base/check.h"

namespace winnow {

RopeTable::RopeTable(const RopeConfig& config, std::span<const float> factors)
    : dims_(config.dims) {
  CHECK(factors.empty() || static_cast<int32_t>(factors.size()) == config.dims / 2);
  frequencies_.resize(static_cast<size_t>(config.dims / 2));
  for (size_t i = 0; i < frequencies_.size(); ++i) {
    const double factor = factors.empty() ? 1.0 : static_cast<double>(factors[i]);
    const double exponent = -2.0 * static_cast<double>(i) / config.dims;
    frequencies_[i] = std::pow(config.base, exponent) / (config.linear_scale * factor);
  }
}

void RopeTable::fill(std::span<const int32_t> positions, ThreadPool& pool) {
  float* values = values_.ensure(positions.size() * static_cast<size_t>(dims_));
  const int64_t half = dims_ / 2;
  pool.run(static_cast<int64_t>(positions.size()), [&](int64_t row_idx, int) {
    float* cosines = values + row_idx * dims_;
    for (int64_t i = 0; i < half; ++i) {
      const double angle =
          positions[static_cast<size_t>(row_idx)] * frequencies_[static_cast<size_t>(i)];
      cosines[i] = static_cast<float>(std::cos(angle));
      cosines[half + i] = static_cast<float>(std::sin(angle));
    }
  });
}

}  // namespace winnow

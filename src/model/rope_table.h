// RopeTable: cosines and sines of the rotation angles of given positions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/thread_pool.h"
#include "model/config.h"

namespace winnow {

// Angles are computed in double, where a position times a frequency is exact to 1e-10 at any length
// in use; a product in float is off by 0.004 at position 131,071.
class RopeTable {
 public:
  // `factors` divide the frequencies: empty, or [config.dims / 2].
  RopeTable(const RopeConfig& config, std::span<const float> factors);

  // Row i of the table becomes [dims / 2 cosines, dims / 2 sines] of positions[i].
  void fill(std::span<const int32_t> positions, ThreadPool& pool);
  int64_t capacity_bytes() const { return static_cast<int64_t>(values_.capacity_bytes()); }
  const float* row(int64_t row_idx) const { return values_.data() + row_idx * dims_; }

 private:
  int32_t dims_;
  std::vector<double> frequencies_;
  AlignedBuffer<float> values_;
};

}  // namespace winnow

// What the machine itself can do: products per second from registers, bytes per second from memory.
// Every measured speed can be told as a share of these.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/table.h"

namespace winnow {

struct MatrixPeak {
  Isa isa;
  std::string_view number;
  double operations_per_second = 0;  // two per multiply-add, all threads together
};

// Each level this CPU has, plainest first. The best of several short trials: other load only lowers
// a figure.
std::vector<MatrixPeak> measure_matrix_peaks(ThreadPool& pool);

// Bytes per second that all threads together read from a buffer much larger than the caches.
double measure_read_bandwidth(ThreadPool& pool);

}  // namespace winnow

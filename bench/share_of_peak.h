// What the machine's own peaks are, measured once per process, so that a benchmark can tell a speed
// as a share of them.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>

#include "kernels/peak.h"
#include "kernels/table.h"

namespace winnow::bench {

// The level that WINNOW_ISA names, or the best.
inline const KernelTable& chosen_kernels() {
  const char* forced = std::getenv("WINNOW_ISA");
  const Result<const KernelTable*> table = select_kernels(forced == nullptr ? "" : forced);
  if (!table.ok()) {
    std::fprintf(stderr, "%s\n", table.error().message.c_str());
    std::exit(2);
  }
  return **table;
}

class MachinePeaks {
 public:
  explicit MachinePeaks(int threads) : pool_(threads) {
    matrix_ = measure_matrix_peaks(pool_);
    bandwidth_ = measure_read_bandwidth(pool_);
  }
  static const MachinePeaks& of_threads(int threads) {
    static std::map<int, MachinePeaks> all;
    return all.try_emplace(threads, threads).first->second;
  }

  // Two per multiply-add; 0 for an arithmetic that the level has no loop for.
  double operations_per_second(Isa isa, std::string_view number) const {
    for (const MatrixPeak& peak : matrix_) {
      if (peak.isa == isa && peak.number == number) return peak.operations_per_second;
    }
    return 0;
  }
  double bytes_per_second() const { return bandwidth_; }

 private:
  ThreadPool pool_;
  std::vector<MatrixPeak> matrix_;
  double bandwidth_ = 0;
};

// `operations` or `bytes` of all iterations together.
inline void report_operations(benchmark::State& state, double operations, double peak) {
  using Counter = benchmark::Counter;
  state.counters["operations/s"] = Counter(operations, Counter::kIsRate);
  if (peak > 0) state.counters["share_of_peak"] = Counter(operations / peak, Counter::kIsRate);
}
inline void report_bytes(benchmark::State& state, double bytes, double bandwidth) {
  using Counter = benchmark::Counter;
  state.counters["bytes/s"] = Counter(bytes, Counter::kIsRate);
  state.counters["share_of_bandwidth"] = Counter(bytes / bandwidth, Counter::kIsRate);
}

}  // namespace winnow::bench

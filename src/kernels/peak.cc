#include "kernels/peak.h"

#include <algorithm>
#include <chrono>

#include "base/aligned_buffer.h"
#include "kernels/peak_loops.h"

namespace winnow {
namespace {

// Shorter than a time slice of the system, so that some trial runs undisturbed.
constexpr double kTrialSeconds = 0.002;
constexpr int kProductTrials = 60;
constexpr int kReadTrials = 8;
constexpr int64_t kBufferBytes = int64_t{256} << 20;
constexpr int64_t kTaskBytes = int64_t{1} << 20;

double seconds_of(ThreadPool& pool, int64_t tasks, FunctionRef<void(int64_t, int)> task) {
  const auto start = std::chrono::steady_clock::now();
  pool.run(tasks, task);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

const PeakLoop* loops_of(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::kAvx2:
      return peak_loops_avx2();
    case Isa::kAvx512:
      return peak_loops_avx512();
    case Isa::kAvx512Bf16:
      return peak_loops_avx512bf16();
    case Isa::kAmx:
      return peak_loops_amx();
#elif defined(__aarch64__)
    case Isa::kNeon:
      return peak_loops_neon();
#endif
    default:
      return peak_loops_scalar();
  }
}

double operations_per_second(const PeakLoop& loop, ThreadPool& pool) {
  const int threads = pool.num_threads();
  const auto time = [&](int64_t rounds) {
    return seconds_of(pool, threads, [&](int64_t, int) { loop.run(rounds); });
  };
  int64_t rounds = 1024;
  while (std::min({time(rounds), time(rounds), time(rounds)}) < kTrialSeconds) rounds *= 2;
  double best = 0;
  for (int trial = 0; trial < kProductTrials; ++trial) {
    const auto operations = static_cast<double>(2 * loop.multiply_adds_per_round * rounds);
    best = std::max(best, operations * threads / time(rounds));
  }
  return best;
}

// Asks for what comes 4 KiB later: without, a core that reads as fast gets half of what memory
// gives.
uint64_t sum_of(const uint64_t* values, int64_t count) {
  constexpr int64_t kAhead = 4096 / sizeof(uint64_t);
  uint64_t sums[8] = {};
  for (int64_t i = 0; i < count; i += 8) {
    __builtin_prefetch(values + i + kAhead, 0, 2);
    for (int64_t lane = 0; lane < 8; ++lane) sums[lane] += values[i + lane];
  }
  uint64_t total = 0;
  for (const uint64_t sum : sums) total += sum;
  return total;
}

}  // namespace

std::vector<MatrixPeak> measure_matrix_peaks(ThreadPool& pool) {
  std::vector<MatrixPeak> peaks;
  for (const Isa isa : known_isas()) {
    if (!cpu_supports(isa)) continue;
    for (const PeakLoop* loop = loops_of(isa); loop->run != nullptr; ++loop) {
      peaks.push_back({isa, loop->number, operations_per_second(*loop, pool)});
    }
  }
  return peaks;
}

double measure_read_bandwidth(ThreadPool& pool) {
  constexpr int64_t kTaskWords = kTaskBytes / 8;
  constexpr int64_t kTasks = kBufferBytes / kTaskBytes;
  AlignedBuffer<uint64_t> buffer(static_cast<size_t>(kBufferBytes / 8));
  // Written by the threads that read it, so that each page lies near one of them.
  pool.run(kTasks, [&](int64_t task, int) {
    std::fill_n(buffer.data() + task * kTaskWords, kTaskWords, static_cast<uint64_t>(task));
  });
  std::vector<uint64_t> sums(static_cast<size_t>(kTasks));
  double best = 0;
  for (int trial = 0; trial < kReadTrials; ++trial) {
    const double seconds = seconds_of(pool, kTasks, [&](int64_t task, int) {
      sums[static_cast<size_t>(task)] += sum_of(buffer.data() + task * kTaskWords, kTaskWords);
    });
    best = std::max(best, static_cast<double>(kBufferBytes) / seconds);
  }
  // The sums are used, so that the reads cannot be left out.
  return sums[1] == static_cast<uint64_t>(kReadTrials * kTaskWords) ? best : 0;
}

}  // namespace winnow

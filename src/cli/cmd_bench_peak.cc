// winnow bench peak: what the machine itself can do, which every other figure is a share of.
#include <boost/json/object.hpp>
#include <cstdio>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/json_output.h"
#include "kernels/peak.h"

namespace winnow {
namespace {

std::string text(const std::vector<MatrixPeak>& peaks, double bytes_per_second, int threads) {
  std::string lines = "threads: " + std::to_string(threads) + "\n";
  char line[96];
  for (const MatrixPeak& peak : peaks) {
    std::snprintf(line, sizeof(line), "%-12s %-6s %10.1f Gop/s\n",
                  std::string(isa_name(peak.isa)).c_str(), std::string(peak.number).c_str(),
                  peak.operations_per_second / 1e9);
    lines += line;
  }
  std::snprintf(line, sizeof(line), "%-19s %10.1f GB/s\n", "read bandwidth",
                bytes_per_second / 1e9);
  return lines + line;
}

boost::json::object json_object(const std::vector<MatrixPeak>& peaks, double bytes_per_second,
                                int threads) {
  boost::json::array matrix;
  for (const MatrixPeak& peak : peaks) {
    matrix.push_back({{"isa", isa_name(peak.isa)},
                      {"number", peak.number},
                      {"operations_per_second", peak.operations_per_second}});
  }
  return {{"threads", threads},
          {"matrix", std::move(matrix)},
          {"read_bytes_per_second", bytes_per_second}};
}

}  // namespace

Result<ExitCode> cmd_bench_peak(Arguments args, Console& console) {
  bool json = false;
  int64_t threads = usable_threads();
  FlagSet flags("bench peak", "Measures the machine's matrix throughput and read bandwidth.",
                "A multiply-add counts as two operations. Other load lowers the figures.\n");
  flags.integer("-t,--threads", threads, {1, 1024}, "threads [all this process may use]",
                "WINNOW_THREADS");
  flags.toggle("--json", json, "print one JSON object");
  TRY(const bool go_on, parse_or_help(flags, args, console));
  if (!go_on) return ExitCode::kOk;
  ThreadPool pool(static_cast<int>(threads));
  const std::vector<MatrixPeak> peaks = measure_matrix_peaks(pool);
  const double bytes_per_second = measure_read_bandwidth(pool);
  if (interrupt::requested()) return fail(ErrorCode::kInterrupted, "interrupted");
  console.out.write(json ? json_line(json_object(peaks, bytes_per_second, pool.num_threads()))
                         : text(peaks, bytes_per_second, pool.num_threads()));
  return ExitCode::kOk;
}

}  // namespace winnow

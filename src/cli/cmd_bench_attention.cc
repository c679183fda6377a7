// winnow bench attention: the attention operator alone.
#include <algorithm>
#include <boost/json/object.hpp>

#include "cli/attention_bench.h"
#include "cli/commands.h"
#include "cli/formatted.h"
#include "cli/interrupt.h"
#include "cli/json_output.h"
#include "cli/loaded_model.h"
#include "kernels/peak.h"
#include "tensor/kv_layout.h"

namespace winnow {
namespace {

constexpr int64_t kMaxOperatorTokens = int64_t{1} << 24;
constexpr const char* kBenchAttentionFooter =
    "The last --queries rows of --len tokens attend, densely and over --density of the pairs they\n"
    "see, chosen at random: sparse_ms. The first 64 tokens and the 64 nearest are always kept.\n"
    "select_ms is the time to score, choose and correct blocks by the rule winnow. The peak is\n"
    "that of 'winnow bench peak' for the numbers that attention multiplies.\n\n"
    "Example:\n"
    "  winnow bench attention --len 131072 --queries 512 --heads 8 --kv-heads 2 --dim 128\n";

struct Flags {
  int64_t tokens = 16384;
  int64_t queries = 512;
  int64_t heads = 8;
  int64_t kv_heads = 2;
  int64_t head_dim = 128;
  float density = 0.05F;
  int64_t repetitions = 3;
  int64_t threads = usable_threads();
  bool json = false;
};

void add_flags(FlagSet& set, Flags& flags) {
  set.integer("--len", flags.tokens, {2 * kPageTokens, kMaxOperatorTokens}, "tokens [16384]");
  set.integer("--queries", flags.queries, {1, kMaxOperatorTokens},
              "rows, the last of the tokens [512]");
  set.integer("--heads", flags.heads, {1, 1024}, "query heads [8]");
  set.integer("--kv-heads", flags.kv_heads, {1, 1024}, "KV heads [2]");
  set.integer("--dim", flags.head_dim, {kKvLanes, 256}, "head width [128]");
  set.number("--density", flags.density, {0, 1}, "share of the pairs multiplied [0.05]");
  set.integer("-r,--repetitions", flags.repetitions, {1, 1000}, "runs; medians are told [3]");
  set.integer("-t,--threads", flags.threads, {1, 1024}, "threads [all this process may use]",
              "WINNOW_THREADS");
  set.toggle("--json", flags.json, "print one JSON object");
}

Status check(const Flags& flags) {
  if (flags.queries > flags.tokens - kPageTokens) {
    return fail(ErrorCode::kInvalidArgument,
                "--queries: expected at most --len - %d = %lld, found %lld", kPageTokens,
                static_cast<long long>(flags.tokens - kPageTokens),
                static_cast<long long>(flags.queries));
  }
  if (flags.heads % flags.kv_heads != 0) {
    return fail(ErrorCode::kInvalidArgument,
                "--heads: expected a multiple of --kv-heads %lld, found %lld",
                static_cast<long long>(flags.kv_heads), static_cast<long long>(flags.heads));
  }
  if (flags.head_dim % kKvLanes != 0) {
    return fail(ErrorCode::kInvalidArgument, "--dim: expected a multiple of %d, found %lld",
                kKvLanes, static_cast<long long>(flags.head_dim));
  }
  return Ok{};
}

// Of floating-point products, at the level that runs.
double float_peak(Isa isa, ThreadPool& pool) {
  double best = 0;
  for (const MatrixPeak& peak : measure_matrix_peaks(pool)) {
    if (peak.isa > isa || peak.number.starts_with("int")) continue;
    best = std::max(best, peak.operations_per_second);
  }
  return best;
}

boost::json::object to_json(const Flags& flags, const AttentionBenchResult& result,
                            double share_of_peak, std::string_view isa, int num_threads) {
  return {{"len", flags.tokens},
          {"queries", flags.queries},
          {"heads", flags.heads},
          {"kv_heads", flags.kv_heads},
          {"dim", flags.head_dim},
          {"density", result.density},
          {"dense_ms", result.dense_ms},
          {"sparse_ms", result.sparse_ms},
          {"select_ms", result.select_ms},
          {"dense_share_of_peak", share_of_peak},
          {"isa", isa},
          {"threads", num_threads},
          {"repetitions", flags.repetitions}};
}

std::string to_text(const AttentionBenchResult& result, double share_of_peak,
                    std::string_view isa) {
  const double share = (result.sparse_ms + result.select_ms) / result.dense_ms;
  return formatted("dense            %10.3f ms, %.0f %% of the peak (%s)\n", result.dense_ms,
                   100 * share_of_peak, std::string(isa).c_str()) +
         formatted("sparse           %10.3f ms at density %.4f\n", result.sparse_ms,
                   result.density) +
         formatted("selection        %10.3f ms\n", result.select_ms) +
         formatted("both / dense     %10.3f\n", share);
}

}  // namespace

Result<ExitCode> cmd_bench_attention(Arguments args, Console& console) {
  Flags flags;
  FlagSet set("bench attention", "Measures the attention operator on random numbers.",
              kBenchAttentionFooter);
  add_flags(set, flags);
  TRY(const bool go_on, parse_or_help(set, args, console));
  if (!go_on) return ExitCode::kOk;
  TRY_STATUS(check(flags));
  TRY(const KernelTable* const kernels, chosen_kernels());
  ThreadPool pool(static_cast<int>(flags.threads));
  const AttentionBenchShape shape{.tokens = static_cast<int32_t>(flags.tokens),
                                  .queries = static_cast<int32_t>(flags.queries),
                                  .heads = static_cast<int>(flags.heads),
                                  .kv_heads = static_cast<int>(flags.kv_heads),
                                  .head_dim = static_cast<int>(flags.head_dim)};
  TRY(const AttentionBenchResult result,
      bench_attention(*kernels, shape, static_cast<double>(flags.density), flags.repetitions, pool,
                      interrupt::flag()));
  const double peak = float_peak(kernels->isa, pool);
  const double share = peak > 0 ? result.dense_operations_per_second / peak : 0;
  const std::string_view isa = isa_name(kernels->isa);
  console.out.write(flags.json ? json_line(to_json(flags, result, share, isa, pool.num_threads()))
                               : to_text(result, share, isa));
  return ExitCode::kOk;
}

}  // namespace winnow

// winnow bench: speed of prompts and answers, told as llama-bench tells it.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <random>

#include "base/memory_info.h"
#include "cli/answer_batch.h"
#include "cli/attention_flags.h"
#include "cli/bench_report.h"
#include "cli/commands.h"
#include "cli/formatted.h"
#include "cli/interrupt.h"
#include "cli/loaded_model.h"
#include "cli/version.h"
#include "engine/sequence.h"

namespace winnow {
namespace {

struct BenchFlags {
  ModelFlags model;
  AttentionFlags attention;
  std::vector<int64_t> prompts = {512};
  std::vector<int64_t> answers = {64};
  std::vector<int64_t> depths = {0};
  std::vector<int64_t> batches = {};
  int64_t repetitions = 5;
  std::string format = "md";
};

constexpr int64_t kMaxRowTokens = int64_t{1} << 30;
constexpr int64_t kMaxStreams = 4096;
constexpr const char* kBenchFooter =
    "Each prompt and answer length is measured at each depth, with random tokens, after a "
    "warm-up.\n"
    "Tokenising is not counted. A length of 0 leaves the test out. With --batch, answers are made\n"
    "by the engine that serves, so many side by side, each after a depth of its own; the speed is\n"
    "that of all together.\n\n"
    "Examples:\n"
    "  winnow bench -m model.gguf -p 512,4096 -n 64\n"
    "  winnow bench -m model.gguf -p 512 -n 0 -d 0,16384 -o json\n"
    "  winnow bench -m model.gguf -p 0 -n 64 -b 1,4,16\n";

void add_flags(FlagSet& set, BenchFlags& flags, bool& quiet) {
  add_model_flag(set, flags.model);
  set.integers("-p,--prompt", flags.prompts, {0, kMaxRowTokens}, "prompt lengths [512]");
  set.integers("-n,--answer", flags.answers, {0, kMaxRowTokens}, "answer lengths [64]");
  set.integers("-d,--depth", flags.depths, {0, kMaxRowTokens}, "tokens already in the cache [0]");
  set.integers("-b,--batch", flags.batches, {1, kMaxStreams},
               "answers side by side [one, alone in its engine]");
  set.integer("-r,--repetitions", flags.repetitions, {1, 1000}, "runs of each test [5]");
  set.choice("-o,--output", flags.format, {"md", "json", "csv"}, "form of the table [md]");
  add_engine_flags(set, flags.model);
  add_attention_flags(set, flags.attention, AttentionHelp::kMain);
  add_decode_flags(set, flags.attention);
  set.toggle("-q,--quiet", quiet, "no progress on stderr");
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

std::string utc_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

BenchSetup describe(const BenchFlags& flags, const LoadedModel& loaded) {
  BenchSetup setup{.commit = std::string(kCommit),
                   .cpu = cpu_name(),
                   .isa = std::string(isa_name(loaded.kernels->isa)),
                   .model_file = std::filesystem::path(flags.model.path).filename().string(),
                   .model_bytes = loaded.model->weight_bytes(),
                   .chunk_tokens = loaded.engine->chunk_tokens(),
                   .num_threads = loaded.engine->num_threads(),
                   .kv_type = flags.model.kv_type};
  std::map<DType, int64_t> params_of_type;
  for (const TensorInfo& tensor : loaded.model->file().tensors()) {
    int64_t elements = 1;
    for (const int64_t dim : tensor.dims) elements *= dim;
    setup.model_params += elements;
    params_of_type[tensor.dtype] += elements;
  }
  const auto main_type =
      std::max_element(params_of_type.begin(), params_of_type.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  setup.model_type = loaded.model->config().architecture +
                     formatted(" %.0fM ", static_cast<double>(setup.model_params) / 1e6) +
                     std::string(dtype_info(main_type->first).name);
  return setup;
}

// Runs tests on one engine. Every run gets fresh random tokens, so that nothing but the depth is in
// the cache.
class Bench {
 public:
  Bench(const LoadedModel& loaded, const EngineOptions& options,
        const std::optional<SparseRule>& attention)
      : loaded_(loaded), options_(options), attention_(attention) {}

  // Time of `row`'s tokens in nanoseconds, `repetitions` times into `row`.
  Status measure(BenchRow& row, int64_t repetitions);

 private:
  Status measure_streams(BenchRow& row, int64_t repetitions);
  Result<double> run_once(BenchRow& row, Sequence& sequence);
  std::vector<TokenId> random_ids(int64_t count);

  const LoadedModel& loaded_;
  EngineOptions options_;
  std::optional<SparseRule> attention_;
  std::mt19937_64 random_{1};
  std::vector<TokenId> depth_ids_;
};

std::vector<TokenId> Bench::random_ids(int64_t count) {
  std::uniform_int_distribution<TokenId> id(0, loaded_.model->config().vocab_size - 1);
  std::vector<TokenId> ids(static_cast<size_t>(count));
  for (TokenId& value : ids) value = id(random_);
  return ids;
}

Result<double> Bench::run_once(BenchRow& row, Sequence& sequence) {
  std::vector<TokenId> prompt = depth_ids_;
  const bool is_answer = row.generated_tokens > 0;
  // An answer needs a token to start from.
  const std::vector<TokenId> fresh = random_ids(is_answer ? 1 : row.prompt_tokens);
  prompt.insert(prompt.end(), fresh.begin(), fresh.end());
  GenerateOptions options;
  options.cancel = &interrupt::flag();
  options.sparse = attention_;
  // The first token comes with the prompt; the steps after it are what is measured.
  options.max_new_tokens = is_answer ? row.generated_tokens + 1 : 0;
  TRY(const Generation generation, loaded_.engine->generate(sequence, prompt, options));
  if (generation.finish == FinishReason::kCancelled) {
    return fail(ErrorCode::kInterrupted, "interrupted");
  }
  const AttentionStats& found = is_answer ? generation.answer_attention : generation.attention;
  // The last run's: the first one also reads the depth.
  row.attention = !found.has_selection() ? "dense"
                  : is_answer            ? answer_attention_name(*attention_)
                                         : prompt_attention_name(*attention_);
  return (is_answer ? generation.predicted_ms : generation.prompt_ms) * 1e6;
}

AnswerBatchShape batch_shape(const BenchRow& row) {
  return {.num_streams = row.num_streams,
          .prompt_tokens = row.depth_tokens + 1,
          .num_steps = row.generated_tokens};
}

Status Bench::measure_streams(BenchRow& row, int64_t repetitions) {
  const AnswerBatchShape shape = batch_shape(row);
  if (attention_ && attention_->sparse_answer(shape.prompt_tokens)) {
    row.attention = answer_attention_name(*attention_);
  }
  TRY(const std::unique_ptr<AnswerBatch> batch,
      AnswerBatch::create(loaded_.model, options_, shape, attention_));
  row.time = utc_time();
  for (int64_t i = -1; i < repetitions; ++i) {
    std::vector<std::vector<TokenId>> prompts(static_cast<size_t>(row.num_streams));
    for (std::vector<TokenId>& prompt : prompts) prompt = random_ids(shape.prompt_tokens);
    TRY(const double ns, batch->run(std::move(prompts)));
    if (i >= 0) row.samples_ns.push_back(ns);
  }
  return Ok{};
}

Status Bench::measure(BenchRow& row, int64_t repetitions) {
  if (row.num_streams > 0) return measure_streams(row, repetitions);
  depth_ids_ = random_ids(row.depth_tokens);
  const std::unique_ptr<Sequence> sequence = loaded_.engine->new_sequence();
  row.time = utc_time();
  // The first run also fills the depth.
  TRY_STATUS(run_once(row, *sequence));
  for (int64_t i = 0; i < repetitions; ++i) {
    TRY(const double ns, run_once(row, *sequence));
    row.samples_ns.push_back(ns);
  }
  return Ok{};
}

// Before any row is measured, so that none is lost.
Status check_rows_fit(const std::vector<BenchRow>& rows, int64_t context_tokens) {
  for (const BenchRow& row : rows) {
    const int64_t first = row.generated_tokens > 0 ? 1 : 0;
    const int64_t needed =
        row.num_streams > 0 ? AnswerBatch::context_tokens(batch_shape(row))
                            : row.depth_tokens + row.prompt_tokens + first + row.generated_tokens;
    if (needed <= context_tokens) continue;
    return fail(ErrorCode::kContextExceeded, "%s: expected a context of %lld tokens, found %lld",
                row.name().c_str(), static_cast<long long>(needed),
                static_cast<long long>(context_tokens));
  }
  return Ok{};
}

std::vector<BenchRow> planned_rows(const BenchFlags& flags) {
  std::vector<BenchRow> rows;
  for (const int64_t depth : flags.depths) {
    for (const int64_t prompt : flags.prompts) {
      if (prompt > 0) rows.push_back({.prompt_tokens = prompt, .depth_tokens = depth});
    }
    for (const int64_t answer : flags.answers) {
      if (answer == 0) continue;
      if (flags.batches.empty()) {
        rows.push_back({.generated_tokens = answer, .depth_tokens = depth});
      }
      for (const int64_t streams : flags.batches) {
        rows.push_back({.generated_tokens = answer, .depth_tokens = depth, .num_streams = streams});
      }
    }
  }
  return rows;
}

}  // namespace

Result<ExitCode> cmd_bench(Arguments args, Console& console) {
  BenchFlags flags;
  FlagSet set("bench", "Measures how fast prompts are read and answers are made.",
              kMoreAttentionFlags + std::string(kBenchFooter));
  add_flags(set, flags, console.quiet);
  TRY(const bool go_on, parse_or_help(set, args, console));
  if (!go_on) return ExitCode::kOk;
  std::vector<BenchRow> rows = planned_rows(flags);
  if (rows.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "--prompt, --answer: expected a length above 0, found none");
  }
  TRY(const std::optional<SparseRule> attention, chosen_attention(flags.attention));
  TRY(const LoadedModel loaded, load_model(flags.model, console));
  TRY_STATUS(check_rows_fit(rows, loaded.engine->context_tokens()));
  BenchSetup setup = describe(flags, loaded);
  Bench bench(loaded, engine_options(flags.model, loaded.kernels), attention);
  for (BenchRow& row : rows) {
    console.note(row.name() + " ...");
    TRY_STATUS(bench.measure(row, flags.repetitions));
  }
  setup.peak_memory_bytes = peak_resident_bytes();
  console.out.write(flags.format == "json"  ? bench_json(setup, rows)
                    : flags.format == "csv" ? bench_csv(setup, rows)
                                            : bench_markdown(setup, rows));
  return ExitCode::kOk;
}

}  // namespace winnow

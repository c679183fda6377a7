// winnow bench serve: latencies and throughput of any server of the OpenAI API.
#include "cli/bench_prompts.h"
#include "cli/commands.h"
#include "cli/filler_text.h"
#include "cli/formatted.h"
#include "cli/isolation_report.h"
#include "cli/json_output.h"
#include "cli/load_report.h"
#include "cli/load_run.h"
#include "cli/output_file.h"
#include "cli/served_model.h"
#include "server/generation_settings.h"

namespace winnow {
namespace {

constexpr int64_t kMaxRequestTokens = int64_t{1} << 24;
constexpr int64_t kMaxRequests = int64_t{1} << 24;
constexpr int64_t kDefaultRequests = 100;
constexpr int64_t kDefaultConcurrency = 4;
constexpr int64_t kDefaultAnswerTokens = 128;
constexpr const char* kDefaultMix = "128:4,512:3,1024:2,4096:1";
constexpr const char* kDefaultStreamPrompt = "128";

// 0 and absent values are flags that were not given.
struct BenchServeFlags {
  std::string endpoint;
  std::optional<std::string> model;
  std::string api_key;
  float rate = 0;
  int64_t concurrency = 0;
  int64_t requests = 0;
  float seconds = 0;
  std::optional<std::string> prompt_tokens;
  int64_t shared_prefix = 0;
  int64_t max_tokens = 0;
  std::optional<uint64_t> seed;
  std::optional<std::string> goodput;
  bool isolation = false;
  int64_t streams = 8;
  int64_t long_prompt = 16384;
  float timeout_s = 600;
  bool json = false;
  bool records = false;
  std::optional<std::string> plot_file;
};

constexpr const char* kBenchServeFooter =
    "Prompts are token ids where the server has /tokenize, and text of about their length "
    "otherwise.\nOne request before the run warms the server up and is not counted.\n\n"
    "Examples:\n"
    "  winnow bench serve --endpoint http://localhost:8080 --concurrency 8 --requests 200\n"
    "  winnow bench serve --endpoint http://localhost:8000/v1 --rate 2 --seconds 60 \\\n"
    "      --goodput ttft:2000,tpot:100 --json --plot latency.svg\n"
    "  winnow bench serve --endpoint http://localhost:8080 --isolation --long-prompt 8192\n";

void add_flags(FlagSet& set, BenchServeFlags& flags, bool& quiet) {
  set.text("--endpoint", flags.endpoint, "the server: http://HOST[:PORT][/PATH]");
  set.require_last();
  set.text("--model", flags.model, "name of the model [the server's first]");
  set.text("--api-key", flags.api_key, "sent as Authorization: Bearer");
  set.number("--rate", flags.rate, {1e-3F, 1e5F}, "requests per second, arriving by chance");
  set.integer("--concurrency", flags.concurrency, {1, 65536},
              "requests at once, each followed by the next [4]");
  set.integer("--requests", flags.requests, {1, kMaxRequests}, "how many [100, or by --seconds]");
  set.number("--seconds", flags.seconds, {1e-3F, 1e6F}, "how long requests are sent");
  set.text("--prompt-tokens", flags.prompt_tokens,
           "LENGTH[:WEIGHT],... [128:4,512:3,1024:2,4096:1]");
  set.integer("--shared-prefix", flags.shared_prefix, {0, kMaxRequestTokens},
              "tokens that all prompts begin with, part of their length [0]");
  set.integer("--max-tokens", flags.max_tokens, {1, kMaxRequestTokens},
              "tokens of each answer [128]");
  set.seed("--seed", flags.seed, "of prompts and arrivals [random]");
  set.text("--goodput", flags.goodput, "ttft:MS,tpot:MS,e2el:MS: what a good request keeps");
  set.toggle("--isolation", flags.isolation, "one long prompt beside streams instead");
  set.integer("--streams", flags.streams, {1, 4096}, "of --isolation [8]");
  set.integer("--long-prompt", flags.long_prompt, {1, kMaxRequestTokens}, "of --isolation [16384]");
  set.number("--timeout", flags.timeout_s, {0.1F, 86400}, "s of a silent server [600]");
  set.toggle("--json", flags.json, "print one JSON object");
  set.toggle("--records", flags.records, "with every request in it");
  set.text("--plot", flags.plot_file, "SVG file for a picture of the latencies");
  set.toggle("-q,--quiet", quiet, "no progress on stderr");
}

Status check_flags(const BenchServeFlags& flags) {
  if (flags.rate > 0 && flags.concurrency > 0) {
    return fail(ErrorCode::kInvalidArgument,
                "--rate, --concurrency: expected one of them, found both");
  }
  if (flags.records && !flags.json) {
    return fail(ErrorCode::kInvalidArgument, "--records: expected --json beside it, found none");
  }
  const bool has_load_flag = flags.rate > 0 || flags.concurrency > 0 || flags.requests > 0 ||
                             flags.seconds > 0 || flags.goodput;
  if (flags.isolation && has_load_flag) {
    return fail(ErrorCode::kInvalidArgument,
                "--isolation: expected none of --rate, --concurrency, --requests, --seconds and "
                "--goodput beside it, found one");
  }
  return Ok{};
}

// A server, and what to send it.
struct ServingBench {
  EndpointUrl url;
  std::unique_ptr<HttpCalls> calls;
  ServedModel model;
  BenchPrompts prompts;
  LengthMix lengths;
  uint64_t seed;
};

BenchPrompts make_prompts(const ServedModel& model, int64_t shared_tokens, uint64_t seed) {
  if (model.text_ids.empty()) return {builtin_prose(), shared_tokens, seed};
  return {model.text_ids, shared_tokens, seed};
}

Result<ServingBench> prepare(const BenchServeFlags& flags, Console& console) {
  const std::string mix =
      flags.prompt_tokens.value_or(flags.isolation ? kDefaultStreamPrompt : kDefaultMix);
  TRY(const LengthMix lengths, LengthMix::parse(mix, kMaxRequestTokens, "--prompt-tokens"));
  TRY(const EndpointUrl url, parse_endpoint_url(flags.endpoint, "--endpoint"));
  const HttpCallOptions options{.api_key = flags.api_key,
                                .silence_limit_s = static_cast<double>(flags.timeout_s)};
  TRY(auto calls, HttpCalls::create(url, options));
  Result<ServedModel> model = ask_served_model(*calls, flags.model);
  if (!model.ok()) {
    const Error& error = model.error();
    if (error.code == ErrorCode::kInterrupted) return error;
    return fail(error.code, "%s%s", url.text().c_str(), error.message.c_str());
  }
  const uint64_t seed = flags.seed.value_or(random_seed());
  BenchPrompts prompts = make_prompts(*model, flags.shared_prefix, seed);
  console.note(model->name + " at " + url.text() +
               (prompts.exact() ? ", prompts of token ids" : ", prompts of text"));
  return ServingBench{.url = url,
                      .calls = std::move(calls),
                      .model = std::move(model).value(),
                      .prompts = std::move(prompts),
                      .lengths = lengths,
                      .seed = seed};
}

void write_report(const std::string& text, const boost::json::object& object, bool json,
                  Console& console) {
  console.out.write(json ? json_line(object) : text);
}

// kIo if nothing came of the run.
Result<ExitCode> outcome(bool interrupted, const std::optional<RequestFailure>& failure) {
  if (interrupted) return ExitCode::kInterrupted;
  if (failure) {
    return fail(ErrorCode::kIo, "expected an answer, found '%s: %s'", failure->kind.c_str(),
                failure->message.c_str());
  }
  return ExitCode::kOk;
}

LoadPlan load_plan(const BenchServeFlags& flags, const ServingBench& bench) {
  LoadPlan plan{.model = bench.model.name,
                .rate = {},
                .concurrency = flags.concurrency > 0 ? flags.concurrency : kDefaultConcurrency,
                .num_requests = {},
                .seconds = {},
                .lengths = bench.lengths,
                .max_tokens = flags.max_tokens > 0 ? flags.max_tokens : kDefaultAnswerTokens,
                .seed = bench.seed};
  if (flags.rate > 0) plan.rate = static_cast<double>(flags.rate);
  if (flags.seconds > 0) plan.seconds = static_cast<double>(flags.seconds);
  if (flags.requests > 0) plan.num_requests = flags.requests;
  if (!plan.seconds && !plan.num_requests) plan.num_requests = kDefaultRequests;
  return plan;
}

// One short request alone.
Result<bool> warm_up(ServingBench& bench) {
  TRY(LengthMix shortest, LengthMix::parse("32", kMaxRequestTokens, "warm-up"));
  const LoadPlan plan{.model = bench.model.name,
                      .rate = {},
                      .concurrency = 1,
                      .num_requests = 1,
                      .seconds = {},
                      .lengths = std::move(shortest),
                      .max_tokens = 4,
                      .seed = 0};
  const LoadResult result = run_load(*bench.calls, plan, bench.prompts, [](int64_t) {});
  if (result.interrupted) return false;
  TRY_STATUS(outcome(false, result.records.front().failure));
  return true;
}

// Every tenth of the requests, or every hundredth one where their number is open.
void note_progress(int64_t num_ended, const LoadPlan& plan, Console& console) {
  const int64_t period = plan.num_requests ? std::max<int64_t>(1, *plan.num_requests / 10) : 100;
  if (num_ended % period != 0) return;
  console.note(formatted("%lld requests ended", static_cast<long long>(num_ended)));
}

Result<ExitCode> bench_load(const BenchServeFlags& flags, ServingBench& bench, Console& console) {
  LoadSetup setup{.endpoint = bench.url.text(),
                  .model = bench.model.name,
                  .prompt_tokens = flags.prompt_tokens.value_or(kDefaultMix),
                  .exact_prompts = bench.prompts.exact(),
                  .shared_prefix_tokens = flags.shared_prefix,
                  .seed = bench.seed};
  if (flags.goodput) {
    TRY(setup.limits, parse_goodput_limits(*flags.goodput, "--goodput"));
  }
  TRY(const bool warm, warm_up(bench));
  if (!warm) return ExitCode::kInterrupted;
  const LoadPlan plan = load_plan(flags, bench);
  setup.rate = plan.rate;
  setup.concurrency = plan.concurrency;
  setup.max_tokens = plan.max_tokens;
  const LoadResult result =
      run_load(*bench.calls, plan, bench.prompts,
               [&plan, &console](int64_t num_ended) { note_progress(num_ended, plan, console); });
  setup.interrupted = result.interrupted;
  const LoadFigures figures = load_figures(result.records, setup.limits);
  write_report(load_text(setup, figures),
               load_json(setup, figures,
                         flags.records ? std::span<const RequestRecord>(result.records)
                                       : std::span<const RequestRecord>()),
               flags.json, console);
  if (flags.plot_file) {
    TRY_STATUS(write_file(*flags.plot_file, load_svg(setup, result.records)));
  }
  const bool nothing = figures.num_completed == 0 && !result.records.empty();
  return outcome(result.interrupted,
                 nothing ? result.records.front().failure : std::optional<RequestFailure>());
}

Result<ExitCode> bench_isolation(const BenchServeFlags& flags, ServingBench& bench,
                                 Console& console) {
  const int64_t room = bench.model.context_tokens.value_or(8192) - bench.lengths.longest() - 1;
  const IsolationPlan plan{
      .model = bench.model.name,
      .num_streams = flags.streams,
      .stream_lengths = bench.lengths,
      .stream_max_tokens = flags.max_tokens > 0 ? flags.max_tokens : std::max<int64_t>(1, room),
      .long_prompt_tokens = flags.long_prompt,
      .seed = bench.seed};
  const IsolationSetup setup{.endpoint = bench.url.text(),
                             .model = bench.model.name,
                             .num_streams = flags.streams,
                             .long_prompt_tokens = flags.long_prompt,
                             .exact_prompts = bench.prompts.exact(),
                             .seed = bench.seed};
  const IsolationResult result =
      run_isolation(*bench.calls, plan, bench.prompts,
                    [&console](std::string_view phase) { console.note(phase); });
  write_report(isolation_text(setup, result), isolation_json(setup, result, flags.records),
               flags.json, console);
  if (flags.plot_file) TRY_STATUS(write_file(*flags.plot_file, isolation_svg(setup, result)));
  return outcome(result.interrupted, result.failure());
}

}  // namespace

Result<ExitCode> cmd_bench_serve(Arguments args, Console& console) {
  BenchServeFlags flags;
  FlagSet set("bench serve", "Measures a server of the OpenAI API under load.", kBenchServeFooter);
  add_flags(set, flags, console.quiet);
  TRY(const bool go_on, parse_or_help(set, args, console));
  if (!go_on) return ExitCode::kOk;
  TRY_STATUS(check_flags(flags));
  if (flags.goodput) TRY_STATUS(parse_goodput_limits(*flags.goodput, "--goodput"));
  TRY(ServingBench bench, prepare(flags, console));
  return flags.isolation ? bench_isolation(flags, bench, console)
                         : bench_load(flags, bench, console);
}

}  // namespace winnow

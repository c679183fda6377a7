#include "server/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <mutex>

#include "tensor/kv_layout.h"

namespace winnow {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;
using Buckets = Histogram::BucketBoundaries;
using Labels = prometheus::Labels;

const Buckets& first_token_buckets() {
  static const Buckets kBuckets = {.001, .005, .01, .02, .04, .06, .08, .1, .25, .5,  .75,
                                   1,    2.5,  5,   7.5, 10,  20,  40,  80, 160, 640, 2560};
  return kBuckets;
}

const Buckets& gap_buckets() {
  static const Buckets kBuckets = {.01, .025, .05, .075, .1,  .15, .2, .3, .4, .5,
                                   .75, 1,    2.5, 5,    7.5, 10,  20, 40, 80};
  return kBuckets;
}

const Buckets& request_buckets() {
  static const Buckets kBuckets = {.3, .5, .8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                   30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};
  return kBuckets;
}

// 1, 2, 5, 10, ... up to the first that holds `most`.
Buckets size_buckets(int64_t most) {
  Buckets buckets;
  for (double decade = 1;; decade *= 10) {
    for (const double step : {1.0, 2.0, 5.0}) {
      buckets.push_back(step * decade);
      if (step * decade >= static_cast<double>(most)) return buckets;
    }
  }
}

std::string_view finished_reason(const RequestEnd& end) {
  if (end.error) return "error";
  switch (end.finish) {
    case FinishReason::kEndToken:
    case FinishReason::kStopped:
      return "stop";
    case FinishReason::kMaxTokens:
    case FinishReason::kContextFull:
      return "length";
    case FinishReason::kCancelled:
      return "abort";
  }
  return "error";
}

}  // namespace

struct Metrics::Impl {
  Impl(const std::string& model_name, int64_t context_tokens);

  Counter& counter(const char* name, const char* help, const Labels& labels = {}) {
    return prometheus::BuildCounter().Name(name).Help(help).Labels(common).Register(registry).Add(
        labels);
  }
  Gauge& gauge(const char* name, const char* help, const Labels& labels = {}) {
    return prometheus::BuildGauge().Name(name).Help(help).Labels(common).Register(registry).Add(
        labels);
  }
  Histogram& histogram(const char* name, const char* help, const Buckets& buckets) {
    return prometheus::BuildHistogram().Name(name).Help(help).Labels(common).Register(registry).Add(
        {}, buckets);
  }
  Counter& ended(std::string_view reason) {
    return counter("vllm:request_success_total", "Requests that ended, by reason.",
                   {{"finished_reason", std::string(reason)}});
  }
  // Raises a counter to a total that is counted elsewhere.
  static void raise(Counter& counter, int64_t total) {
    const double more = static_cast<double>(total) - counter.Value();
    if (more > 0) counter.Increment(more);
  }
  void read(const ServiceStatus& status, const HttpCounts& http);

  const Labels common;
  prometheus::Registry registry;
  std::mutex reading;

  Gauge& running;
  Gauge& waiting;
  Gauge& kv_usage;
  Counter& prefix_queries;
  Counter& prefix_hits;
  Counter& prefix_loaded;
  Counter& preemptions;
  Histogram& first_token;
  Histogram& gap;
  Histogram& per_token;
  Histogram& whole;
  Histogram& queue;
  Histogram& prefill;
  Histogram& decode;
  Histogram& inference;
  Counter& prompt_tokens;
  Counter& generated_tokens;
  Histogram& request_prompt_tokens;
  Histogram& request_generated_tokens;
  Histogram& request_computed_tokens;
  Counter& tokens_computed;
  Counter& tokens_cached;

  Gauge& pages_live;
  Gauge& pages_cached;
  Gauge& pages_free;
  Gauge& pages_total;
  Counter& steps;
  Histogram& step_seconds;
  Histogram& chunk_seconds;
  Counter& pairs_kept;
  Counter& pairs_causal;
  Counter& dense_requests;
  Gauge& seconds_in_step;
  Gauge& up;
  Gauge& connections;
  Counter& accepted;
  Counter& timeouts;
  Counter& refused;
  Counter& clients_left;
};

Metrics::Impl::Impl(const std::string& model_name, int64_t context_tokens)
    : common({{"model_name", model_name}, {"engine", "0"}}),
      running(gauge("vllm:num_requests_running", "Requests that are being computed.")),
      waiting(gauge("vllm:num_requests_waiting", "Requests that wait for room.")),
      kv_usage(gauge("vllm:kv_cache_usage_perc",
                     "Share of the KV pages that requests hold; 1 is all of them.")),
      prefix_queries(counter("vllm:prefix_cache_queries_total",
                             "Prompt tokens that were looked up in the prefix cache.")),
      prefix_hits(
          counter("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache.")),
      prefix_loaded(counter("winnow_saved_prefix_loaded_tokens_total",
                            "Tokens whose K and V came from saved prefixes.")),
      preemptions(counter("vllm:num_preemptions_total", "Requests put back for want of pages.")),
      first_token(histogram("vllm:time_to_first_token_seconds",
                            "From the request to its first token.", first_token_buckets())),
      gap(histogram("vllm:inter_token_latency_seconds", "Between two tokens of an answer.",
                    gap_buckets())),
      per_token(histogram("vllm:request_time_per_output_token_seconds",
                          "Mean time between the tokens of an answer, per request.",
                          gap_buckets())),
      whole(histogram("vllm:e2e_request_latency_seconds", "From the request to its end.",
                      request_buckets())),
      queue(histogram("vllm:request_queue_time_seconds", "From the request to its first step.",
                      request_buckets())),
      prefill(histogram("vllm:request_prefill_time_seconds",
                        "From the first step to the first token.", request_buckets())),
      decode(histogram("vllm:request_decode_time_seconds", "From the first token to the last.",
                       request_buckets())),
      inference(histogram("vllm:request_inference_time_seconds",
                          "From the first step to the last token.", request_buckets())),
      prompt_tokens(counter("vllm:prompt_tokens_total", "Prompt tokens, cached ones included.")),
      generated_tokens(counter("vllm:generation_tokens_total", "Generated tokens.")),
      request_prompt_tokens(histogram("vllm:request_prompt_tokens", "Prompt tokens per request.",
                                      size_buckets(context_tokens))),
      request_generated_tokens(histogram("vllm:request_generation_tokens",
                                         "Generated tokens per request.",
                                         size_buckets(context_tokens))),
      request_computed_tokens(histogram("vllm:request_prefill_kv_computed_tokens",
                                        "Prompt tokens per request that were not cached.",
                                        size_buckets(context_tokens))),
      tokens_computed(counter("vllm:prompt_tokens_by_source_total",
                              "Prompt tokens, computed or cached.", {{"source", "computed"}})),
      tokens_cached(counter("vllm:prompt_tokens_by_source_total",
                            "Prompt tokens, computed or cached.", {{"source", "cached"}})),
      pages_live(gauge("winnow_kv_pages", "KV pages by state.", {{"state", "live"}})),
      pages_cached(gauge("winnow_kv_pages", "KV pages by state.", {{"state", "cached"}})),
      pages_free(gauge("winnow_kv_pages", "KV pages by state.", {{"state", "free"}})),
      pages_total(gauge("winnow_kv_pages_total_count", "KV pages there are.")),
      steps(counter("winnow_steps_total", "Steps of the engine.")),
      step_seconds(histogram("winnow_step_seconds", "Steps without prompt tokens.", gap_buckets())),
      chunk_seconds(
          histogram("winnow_prefill_chunk_seconds", "Steps with prompt tokens.", gap_buckets())),
      pairs_kept(counter("winnow_attention_pairs_kept_total",
                         "Pairs of query and key that prompts multiplied.")),
      pairs_causal(counter("winnow_attention_pairs_dense_total",
                           "Pairs that dense attention would have multiplied.")),
      dense_requests(
          counter("winnow_dense_prompts_total", "Prompts in which no row chose among blocks.")),
      seconds_in_step(gauge("winnow_seconds_in_step", "Since the engine last ended a step.")),
      up(gauge("winnow_engine_up", "1 while the engine runs.")),
      connections(gauge("winnow_http_connections", "Open connections.")),
      accepted(counter("winnow_http_connections_accepted_total", "Connections so far.")),
      timeouts(counter("winnow_http_timeouts_total", "Clients too slow to ask or to read.")),
      refused(counter("winnow_http_connections_refused_total",
                      "Connections beyond the limit, closed at once.")),
      clients_left(counter("winnow_http_clients_left_total",
                           "Clients that left before their answer was complete.")) {
  for (const char* reason : {"stop", "length", "abort", "error"}) ended(reason);
}

void Metrics::Impl::read(const ServiceStatus& status, const HttpCounts& http) {
  const auto as_double = [](int64_t count) { return static_cast<double>(count); };
  running.Set(as_double(status.num_running));
  waiting.Set(as_double(status.num_waiting));
  const PageCounts& pages = status.pages;
  kv_usage.Set(pages.total > 0 ? as_double(pages.live) / as_double(pages.total) : 0);
  pages_live.Set(as_double(pages.live));
  pages_cached.Set(as_double(pages.cached));
  pages_free.Set(as_double(pages.free));
  pages_total.Set(as_double(pages.total));
  // The number of pages is a label there, as routers expect it.
  gauge("vllm:cache_config_info", "Size and number of the KV pages.",
        {{"block_size", std::to_string(kPageTokens)},
         {"num_gpu_blocks", std::to_string(pages.total)}})
      .Set(1);
  raise(prefix_queries, status.prefix_queried_tokens);
  raise(prefix_hits, status.prefix_hit_tokens);
  raise(prefix_loaded, status.prefix_loaded_tokens);
  raise(preemptions, status.num_preemptions);
  raise(steps, status.num_steps);
  seconds_in_step.Set(status.seconds_in_step);
  up.Set(status.failed ? 0 : 1);
  connections.Set(as_double(http.connections));
  raise(accepted, http.accepted);
  raise(timeouts, http.timeouts);
  raise(refused, http.refused);
}

Metrics::Metrics(const std::string& model_name, int64_t context_tokens)
    : impl_(std::make_unique<Impl>(model_name, context_tokens)) {}
Metrics::~Metrics() = default;

void Metrics::on_end(const RequestEnd& end) {
  Impl& m = *impl_;
  m.ended(finished_reason(end)).Increment();
  const auto prompt = static_cast<double>(end.prompt_tokens);
  const auto generated = static_cast<double>(end.generated_tokens);
  const double computed = prompt - static_cast<double>(end.cached_tokens);
  m.prompt_tokens.Increment(prompt);
  m.generated_tokens.Increment(generated);
  m.tokens_computed.Increment(computed);
  m.tokens_cached.Increment(static_cast<double>(end.cached_tokens));
  m.pairs_kept.Increment(static_cast<double>(end.attention.kept_pairs));
  m.pairs_causal.Increment(static_cast<double>(end.attention.causal_pairs));
  if (end.error || end.finish == FinishReason::kCancelled) return;
  m.first_token.Observe(end.queue_s + end.prompt_s);
  m.queue.Observe(end.queue_s);
  m.prefill.Observe(end.prompt_s);
  m.decode.Observe(end.decode_s);
  m.inference.Observe(end.prompt_s + end.decode_s);
  m.whole.Observe(end.queue_s + end.prompt_s + end.decode_s);
  if (end.generated_tokens > 1) m.per_token.Observe(end.decode_s / (generated - 1));
  m.request_prompt_tokens.Observe(prompt);
  m.request_generated_tokens.Observe(generated);
  m.request_computed_tokens.Observe(computed);
  if (!end.attention.has_selection()) m.dense_requests.Increment();
}

void Metrics::on_gap(double seconds) { impl_->gap.Observe(seconds); }

void Metrics::on_step(const StepReport& step) {
  (step.prompt_tokens > 0 ? impl_->chunk_seconds : impl_->step_seconds).Observe(step.seconds);
}

void Metrics::on_http(int status, bool client_left) {
  if (client_left) impl_->clients_left.Increment();
  if (status == 0) return;
  impl_
      ->counter("winnow_http_requests_total", "Answers, by status.",
                {{"status", std::to_string(status)}})
      .Increment();
}

std::string Metrics::text(const ServiceStatus& status, const HttpCounts& http) {
  const std::lock_guard lock(impl_->reading);
  impl_->read(status, http);
  return prometheus::TextSerializer().Serialize(impl_->registry.Collect());
}

}  // namespace winnow

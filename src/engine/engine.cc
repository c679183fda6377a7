#include "engine/engine.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/stopwatch.h"
#include "engine/cost_model.h"
#include "engine/kv_capacity.h"
#include "engine/prompt_check.h"
#include "engine/sequence.h"
#include "engine/token_scores.h"
#include "model/decoder.h"

namespace winnow {
namespace {

bool is_cancelled(const GenerateOptions& options) {
  return options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed);
}

Error cancelled() { return fail(ErrorCode::kInterrupted, "cancelled during the prompt"); }

}  // namespace

// One run of a prompt, or of its first part.
struct PromptRun {
  std::span<const TokenId> prompt;
  PromptMode mode;
  int64_t chunk_tokens = 0;
  int64_t logits_begin = 0;  // positions from here on produce logits
  AttentionStats stats = {};
  ProfileCollector* profiled = nullptr;
  const SparseProfile* profile = nullptr;
};

struct Engine::Impl {
  Impl(std::shared_ptr<const Model> model_in, const KernelTable& kernels, int num_threads)
      : model(std::move(model_in)),
        pool(num_threads),
        decoder(*model, kernels),
        cost(model->config()) {}

  Status check_prompt(std::span<const TokenId> prompt) const;
  void note_pages();
  PromptRun new_run(Sequence& sequence, std::span<const TokenId> prompt,
                    const GenerateOptions& options) const;
  Result<PromptRun> start_prompt(Engine& engine, Sequence& sequence,
                                 std::span<const TokenId> prompt, const GenerateOptions& options);
  Status prefill(Sequence& sequence, PromptRun& run, int64_t until, const GenerateOptions& options,
                 FunctionRef<void(const LogitRows&)> on_logits);
  Status answer(Sequence& sequence, const PromptRun& run, const GenerateOptions& options,
                std::vector<float>& logits, const Stopwatch& since_call, Generation& result);
  SparseSequence sparse_sequence(Sequence& sequence, const PromptRun& run) const;
  void run_generated_token(Sequence& sequence, const PromptRun& run, TokenId token,
                           AttentionStats& stats, std::vector<float>& logits);

  std::shared_ptr<const Model> model;
  ThreadPool pool;
  Decoder decoder;
  PrefillCost cost;
  std::unique_ptr<KvStore> kv;
  int64_t context_tokens = 0;
  int64_t chunk_tokens = 0;
  int64_t peak_pages = 0;
  std::optional<SparseProfile> profile;
  ProfileSource profile_source;
};

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::create(std::shared_ptr<const Model> model,
                                               const EngineOptions& options) {
  const ModelConfig& config = model->config();
  TRY_STATUS(check_options(options, config));
  const KernelTable* kernels = options.kernels;
  if (kernels == nullptr) {
    TRY(kernels, select_kernels(""));
  }
  const int num_threads = options.num_threads == 0 ? usable_threads() : options.num_threads;
  const std::vector<KvLayout> layouts = kv_layouts(config, options.kv_dtype);
  StepSize step{.context_tokens =
                    options.context_tokens == 0 ? config.context_tokens : options.context_tokens,
                .num_threads = num_threads};
  step.num_rows = choose_chunk_tokens(options.chunk_tokens, config, *kernels, step);
  TRY(const int64_t context_tokens,
      choose_kv_tokens({.tokens = options.context_tokens,
                        .most = config.context_tokens,
                        .page_bytes = bytes_per_page(layouts) * options.num_contexts,
                        .step_bytes = step_bytes(config, *kernels, step)},
                       *model));
  auto impl = std::make_unique<Impl>(std::move(model), *kernels, num_threads);
  if (impl->pool.num_threads() < num_threads) {
    return fail(ErrorCode::kOutOfMemory, "threads: asked for %d, but the system allowed only %d",
                num_threads, impl->pool.num_threads());
  }
  impl->context_tokens = context_tokens;
  impl->chunk_tokens = step.num_rows;
  TRY(impl->kv, KvStore::create(layouts, pages_for(context_tokens) * options.num_contexts));
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

const Model& Engine::model() const { return *impl_->model; }
int64_t Engine::context_tokens() const { return impl_->context_tokens; }
int Engine::num_threads() const { return impl_->pool.num_threads(); }
int64_t Engine::chunk_tokens() const { return impl_->chunk_tokens; }
int64_t Engine::free_tokens() const { return impl_->kv->pool().num_free() * kPageTokens; }
int64_t Engine::kv_bytes() const { return impl_->peak_pages * impl_->kv->bytes_per_page(); }
std::unique_ptr<Sequence> Engine::new_sequence() { return std::make_unique<Sequence>(*impl_->kv); }

Status Engine::Impl::check_prompt(std::span<const TokenId> prompt) const {
  return winnow::check_prompt(*model, context_tokens, context_tokens, prompt);
}

void Engine::Impl::note_pages() {
  peak_pages = std::max(peak_pages, kv->num_pages() - kv->pool().num_free());
}

// Forgets what of the sequence does not serve the prompt.
PromptRun Engine::Impl::new_run(Sequence& sequence, std::span<const TokenId> prompt,
                                const GenerateOptions& options) const {
  PromptRun run{.prompt = prompt,
                .mode = PromptMode::of(options.sparse, std::ssize(prompt)),
                .chunk_tokens = chunk_tokens,
                .logits_begin = std::ssize(prompt)};
  sequence.reuse(prompt, run.mode, options.reuse == PrefixReuse::kExact);
  return run;
}

Result<PromptRun> Engine::Impl::start_prompt(Engine& engine, Sequence& sequence,
                                             std::span<const TokenId> prompt,
                                             const GenerateOptions& options) {
  PromptRun run = new_run(sequence, prompt, options);
  const bool wants_profile =
      run.mode.uses_summaries() && run.mode.rule->kind == SparseRuleKind::kWinnow;
  if (wants_profile && profile_source) {
    ProfileSource source = std::exchange(profile_source, nullptr);
    Result<SparseProfile> found = source(engine);
    if (!found.ok()) {
      profile_source = std::move(source);  // the next prompt may have more luck
      return found.error();
    }
    profile = std::move(found).value();
  }
  run.profile = profile ? &*profile : nullptr;
  return run;
}

SparseSequence Engine::Impl::sparse_sequence(Sequence& sequence, const PromptRun& run) const {
  return {.rule = run.mode.rule ? &*run.mode.rule : nullptr,
          .end = run.mode.sparse_end,
          .summaries = &sequence.summaries(),
          .profile = run.profile};
}

// Runs what of the prompt's first `until` tokens the sequence does not hold yet, in chunks that end
// at multiples of the chunk size.
Status Engine::Impl::prefill(Sequence& sequence, PromptRun& run, int64_t until,
                             const GenerateOptions& options,
                             FunctionRef<void(const LogitRows&)> on_logits) {
  const Stopwatch watch;
  const int64_t reused = sequence.size();
  if (!sequence.reserve(until)) {
    return fail(ErrorCode::kContextExceeded,
                "KV cache: the prompt needs %lld pages of %d tokens, but %lld are free",
                static_cast<long long>(pages_for(until)), kPageTokens,
                static_cast<long long>(kv->pool().num_free()));
  }
  note_pages();
  SparseSequence sparse = sparse_sequence(sequence, run);
  sparse.observer = options.observer;
  while (sequence.size() < until) {
    if (is_cancelled(options)) return cancelled();
    const int64_t begin = sequence.size();
    const int64_t end = std::min(until, (begin / run.chunk_tokens + 1) * run.chunk_tokens);
    const StepSequence chunk{
        .tokens = run.prompt.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
        .begin = static_cast<int32_t>(begin),
        .pages = sequence.pages(),
        .phase = Phase::kPrompt,
        .num_logits =
            static_cast<int32_t>(std::max(int64_t{0}, end - std::max(begin, run.logits_begin))),
        .sparse = run.mode.has_sparse_rows() ? &sparse : nullptr,
        .stats = &run.stats,
        .profiled = run.profiled};
    const bool complete = decoder.run_step({&chunk, 1}, *kv, pool, on_logits, options.cancel);
    sequence.append(chunk.tokens, Phase::kPrompt);
    if (options.on_prefill) {
      const double elapsed = watch.seconds();
      const double eta = cost.eta_s(elapsed, reused, end, until, run.stats.effective_density());
      options.on_prefill({end, reused, until, elapsed, eta, run.stats});
    }
    if (!complete) return cancelled();
  }
  return Ok{};
}

Result<Generation> Engine::generate(Sequence& sequence, std::span<const TokenId> prompt,
                                    const GenerateOptions& options) {
  const Stopwatch watch;
  TRY_STATUS(impl_->check_prompt(prompt));
  TRY_STATUS(validate(options.sampling, impl_->model->config().vocab_size));
  Generation result;
  result.prompt_tokens = static_cast<int64_t>(prompt.size());
  TRY(PromptRun run, impl_->start_prompt(*this, sequence, prompt, options));
  result.reused_tokens = sequence.size();
  const Stopwatch prompt_watch;
  // The last prompt token is always run: its logits choose the first token of the answer.
  run.logits_begin = result.prompt_tokens - 1;

  std::vector<float> logits(static_cast<size_t>(impl_->model->config().vocab_size));
  const auto keep_logits = [&](const LogitRows& rows) {
    std::copy_n(rows.values, logits.size(), logits.begin());
  };
  const Status prefilled =
      impl_->prefill(sequence, run, result.prompt_tokens, options, keep_logits);
  result.attention = run.stats;
  result.prompt_ms = prompt_watch.ms();
  if (!prefilled.ok()) {
    if (prefilled.error().code != ErrorCode::kInterrupted) return prefilled.error();
    result.finish = FinishReason::kCancelled;
    return result;
  }

  TRY_STATUS(impl_->answer(sequence, run, options, logits, watch, result));
  return result;
}

// Samples and runs token after token until something ends the answer; `logits` are those of the
// last prompt token.
Status Engine::Impl::answer(Sequence& sequence, const PromptRun& run,
                            const GenerateOptions& options, std::vector<float>& logits,
                            const Stopwatch& since_call, Generation& result) {
  Sampler sampler(options.sampling, run.prompt);
  const Stopwatch watch;
  const auto limit = options.max_new_tokens;
  const auto ends_answer = [&](TokenId token) {
    return std::find(options.end_tokens.begin(), options.end_tokens.end(), token) !=
           options.end_tokens.end();
  };
  const auto finish = [&](FinishReason reason) {
    result.finish = reason;
    return Ok{};
  };
  while (limit < 0 || static_cast<int64_t>(result.tokens.size()) < limit) {
    if (options.on_logits) options.on_logits(logits);
    TRY(const TokenId token, sampler.sample(logits));
    if (result.tokens.empty()) result.ttft_ms = since_call.ms();
    result.predicted_ms = watch.ms();
    if (ends_answer(token)) return finish(FinishReason::kEndToken);
    result.tokens.push_back(token);
    if (options.on_token && !options.on_token(token)) return finish(FinishReason::kStopped);
    if (is_cancelled(options)) return finish(FinishReason::kCancelled);
    if (static_cast<int64_t>(result.tokens.size()) == limit)
      break;  // its successor is not asked for
    if (sequence.size() >= context_tokens || !sequence.reserve(sequence.size() + 1)) {
      return finish(FinishReason::kContextFull);
    }
    note_pages();
    run_generated_token(sequence, run, token, result.answer_attention, logits);
  }
  return finish(FinishReason::kMaxTokens);
}

void Engine::Impl::run_generated_token(Sequence& sequence, const PromptRun& run, TokenId token,
                                       AttentionStats& stats, std::vector<float>& logits) {
  const SparseSequence sparse = sparse_sequence(sequence, run);
  const StepSequence step{.tokens = {&token, 1},
                          .begin = static_cast<int32_t>(sequence.size()),
                          .pages = sequence.pages(),
                          .phase = Phase::kGenerate,
                          .num_logits = 1,
                          .sparse = run.mode.sparse_answer ? &sparse : nullptr,
                          .stats = &stats};
  decoder.run_step({&step, 1}, *kv, pool, [&](const LogitRows& rows) {
    std::copy_n(rows.values, logits.size(), logits.begin());
  });
  sequence.append({&token, 1}, Phase::kGenerate);
}

Result<ScoredText> Engine::score(std::span<const TokenId> ids, int64_t num_last,
                                 const GenerateOptions& options) {
  Sequence sequence(*impl_->kv);
  return score(sequence, ids, num_last, options);
}

Result<ScoredText> Engine::score(Sequence& sequence, std::span<const TokenId> ids, int64_t num_last,
                                 const GenerateOptions& options) {
  TRY_STATUS(impl_->check_prompt(ids));
  const size_t num_scored = std::min(static_cast<size_t>(num_last), ids.size());
  const auto vocab_size = static_cast<size_t>(impl_->model->config().vocab_size);
  ScoredText scored;
  scored.target_logprob.resize(num_scored - 1);
  scored.top1.resize(num_scored);
  sequence.truncate(0);
  size_t scored_rows = 0;  // of earlier chunks and of this one
  const auto score_rows = [&](const LogitRows& rows) {
    impl_->pool.run(rows.num_rows, [&](int64_t row, int) {
      const size_t scored_idx = scored_rows + static_cast<size_t>(row);
      const size_t position = ids.size() - num_scored + scored_idx;
      const bool has_target = position + 1 < ids.size();
      const RowSoftmax softmax({rows.values + static_cast<size_t>(row) * vocab_size, vocab_size});
      if (has_target) {
        scored.target_logprob[scored_idx] = static_cast<float>(softmax.logprob(ids[position + 1]));
      }
      scored.top1[scored_idx] = softmax.best();
    });
    scored_rows += static_cast<size_t>(rows.num_rows);
  };
  TRY(PromptRun run, impl_->start_prompt(*this, sequence, ids, options));
  run.logits_begin = std::ssize(ids) - static_cast<int64_t>(num_scored);
  TRY_STATUS(impl_->prefill(sequence, run, std::ssize(ids), options, score_rows));
  scored.attention = run.stats;
  for (size_t i = 0; i < scored.target_logprob.size(); ++i) {
    if (std::isfinite(scored.target_logprob[i])) continue;
    return fail(ErrorCode::kNumerical,
                "logits of scored token %zu: expected finite numbers, found NaN or infinity", i);
  }
  return scored;
}

Result<SparseProfile> Engine::profile(std::span<const TokenId> ids,
                                      const GenerateOptions& options) {
  TRY_STATUS(impl_->check_prompt(ids));
  const std::vector<LayerConfig>& layers = impl_->model->config().layers;
  ProfileCollector collector(static_cast<int>(layers.size()));
  Sequence sequence(*impl_->kv);
  PromptRun run = impl_->new_run(sequence, ids, options);
  run.profiled = &collector;
  TRY_STATUS(impl_->prefill(sequence, run, std::ssize(ids), options, [](const LogitRows&) {}));
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].attention_window() > 0) continue;
    const auto layer_idx = static_cast<int>(i);
    collector.finish_layer(layer_idx, impl_->kv->layer(layer_idx), sequence.pages(),
                           static_cast<int32_t>(sequence.size()));
  }
  return collector.take();
}

void Engine::set_profile_source(ProfileSource source) {
  impl_->profile.reset();
  impl_->profile_source = std::move(source);
}

Result<ComparedAttention> Engine::compare(std::span<const TokenId> ids, int64_t begin, int64_t end,
                                          const GenerateOptions& reference,
                                          const GenerateOptions& other,
                                          FunctionRef<void(const LogitPair&)> on_pair) {
  TRY_STATUS(impl_->check_prompt(ids));
  const auto vocab_size = static_cast<size_t>(impl_->model->config().vocab_size);
  Sequence reference_sequence(*impl_->kv);
  Sequence other_sequence(*impl_->kv);
  TRY(PromptRun reference_run, impl_->start_prompt(*this, reference_sequence, ids, reference));
  TRY(PromptRun other_run, impl_->start_prompt(*this, other_sequence, ids, other));
  // Whole pages at a time: a sparse tile chooses its blocks for all its rows together, and the
  // logits of one page are kept, not those of the whole text.
  const int64_t first_page = begin / kPageTokens * kPageTokens;
  const auto ignore = [](const LogitRows&) {};
  TRY_STATUS(impl_->prefill(reference_sequence, reference_run, first_page, reference, ignore));
  TRY_STATUS(impl_->prefill(other_sequence, other_run, first_page, other, ignore));
  std::vector<float> kept(static_cast<size_t>(kPageTokens) * vocab_size);
  while (reference_sequence.size() < end) {
    const int64_t page_begin = reference_sequence.size();
    const int64_t page_end = std::min(std::ssize(ids), page_begin + kPageTokens);
    const int64_t first = std::max(begin, page_begin);
    reference_run.logits_begin = other_run.logits_begin = first;
    const auto row_at = [&](int64_t row) {
      return std::span(kept).subspan(static_cast<size_t>(row) * vocab_size, vocab_size);
    };
    const auto keep = [&](const LogitRows& rows) {
      std::copy_n(rows.values, static_cast<size_t>(rows.num_rows) * vocab_size,
                  row_at(rows.row_idx).data());
    };
    const auto pair_up = [&](const LogitRows& rows) {
      const int64_t wanted = std::min(rows.num_rows, end - first - rows.row_idx);
      impl_->pool.run(std::max<int64_t>(0, wanted), [&](int64_t row, int) {
        const int64_t row_idx = rows.row_idx + row;
        on_pair({first + row_idx,
                 row_at(row_idx),
                 {rows.values + static_cast<size_t>(row) * vocab_size, vocab_size}});
      });
    };
    TRY_STATUS(impl_->prefill(reference_sequence, reference_run, page_end, reference, keep));
    TRY_STATUS(impl_->prefill(other_sequence, other_run, page_end, other, pair_up));
  }
  reference_run.logits_begin = other_run.logits_begin = std::ssize(ids);
  TRY_STATUS(impl_->prefill(reference_sequence, reference_run, std::ssize(ids), reference, ignore));
  TRY_STATUS(impl_->prefill(other_sequence, other_run, std::ssize(ids), other, ignore));
  return ComparedAttention{reference_run.stats, other_run.stats};
}

Result<ComparedAnswers> Engine::compare_answers(std::span<const TokenId> ids, int64_t begin,
                                                const GenerateOptions& reference,
                                                const GenerateOptions& other,
                                                FunctionRef<void(const LogitPair&)> on_pair) {
  TRY_STATUS(impl_->check_prompt(ids));
  CHECK(begin > 0 && begin < std::ssize(ids) && begin % kPageTokens == 0);
  const std::span<const TokenId> prompt = ids.first(static_cast<size_t>(begin));
  Sequence reference_sequence(*impl_->kv);
  Sequence other_sequence(*impl_->kv);
  TRY(PromptRun reference_run, impl_->start_prompt(*this, reference_sequence, prompt, reference));
  TRY(const PromptRun other_run, impl_->start_prompt(*this, other_sequence, prompt, other));
  TRY_STATUS(
      impl_->prefill(reference_sequence, reference_run, begin, reference, [](const LogitRows&) {}));
  other_sequence.share(reference_sequence, begin);

  const auto vocab_size = static_cast<size_t>(impl_->model->config().vocab_size);
  std::vector<float> reference_logits(vocab_size);
  std::vector<float> other_logits(vocab_size);
  ComparedAnswers result;
  const auto run_token = [&](Sequence& sequence, const PromptRun& run, TokenId token,
                             ComparedAnswers::Side& side, std::vector<float>& logits) {
    if (!sequence.reserve(sequence.size() + 1)) return false;
    const Stopwatch watch;
    impl_->run_generated_token(sequence, run, token, side.attention, logits);
    side.ms += watch.ms();
    return true;
  };
  for (int64_t position = begin; position < std::ssize(ids); ++position) {
    if (is_cancelled(other)) return fail(ErrorCode::kInterrupted, "cancelled during the answer");
    const TokenId token = ids[static_cast<size_t>(position)];
    if (!run_token(reference_sequence, reference_run, token, result.reference, reference_logits) ||
        !run_token(other_sequence, other_run, token, result.other, other_logits)) {
      return fail(ErrorCode::kContextExceeded, "KV cache: the answers need more pages than it has");
    }
    on_pair({position, reference_logits, other_logits});
  }
  impl_->note_pages();
  return result;
}

}  // namespace winnow

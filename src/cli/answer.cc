#include "cli/answer.h"

#include <algorithm>
#include <cstdio>

#include "base/memory_info.h"
#include "cli/formatted.h"
#include "cli/interrupt.h"
#include "cli/json_output.h"
#include "cli/progress_line.h"
#include "tokenizer/text_stream.h"

namespace winnow {
namespace {

double per_second(int64_t count, double ms) {
  return count > 0 && ms > 0 ? static_cast<double>(count) * 1e3 / ms : 0;
}

// Prompt tokens that were run, the reused ones not counted.
int64_t tokens_read(const Answer& answer) {
  return std::max<int64_t>(0, answer.prompt_tokens_held - answer.generation.reused_tokens);
}

// Where the time of a prompt went.
struct PromptTimes {
  double select_ms = 0;
  double attend_ms = 0;
  double rest_ms = 0;
};

PromptTimes prompt_times(const Answer& answer) {
  const AttentionStats& attention = answer.generation.attention;
  const double ms_per_thread = 1e3 / answer.num_threads;
  PromptTimes times{.select_ms = attention.select_s * ms_per_thread,
                    .attend_ms = attention.attend_s * ms_per_thread};
  times.rest_ms = std::max(0.0, answer.generation.prompt_ms - times.select_ms - times.attend_ms);
  return times;
}

}  // namespace

Result<Answer> answer(const LoadedModel& loaded, Sequence& sequence, const AnswerRequest& request,
                      Console& console) {
  Answer result{.num_threads = loaded.engine->num_threads()};
  TextStream stream(*loaded.tokenizer, std::make_shared<const MarkSet>(request.stops));
  ProgressLine progress(console, static_cast<int64_t>(request.prompt.size()));
  const auto take = [&](const std::string& text) {
    result.text += text;
    return !request.print || console.out.write(text);
  };
  GenerateOptions options;
  options.max_new_tokens = request.max_new_tokens;
  options.reuse = request.reuse;
  options.sparse = request.sparse;
  options.on_logits = request.on_logits;
  options.sampling = request.sampling;
  const std::span<const TokenId> end_tokens = loaded.tokenizer->end_tokens();
  options.end_tokens.assign(end_tokens.begin(), end_tokens.end());
  options.cancel = &interrupt::flag();
  options.on_prefill = [&](const PrefillProgress& state) {
    result.prompt_tokens_held = state.done;
    progress.update(state);
  };
  options.on_token = [&](TokenId token) {
    progress.finish();
    const bool readable = take(stream.push(token));
    return readable && !stream.stopped();
  };
  Result<Generation> generation = loaded.engine->generate(sequence, request.prompt, options);
  progress.finish();
  if (!generation.ok()) return generation.error();
  take(stream.finish());
  result.matched_stop = stream.matched_stop();
  result.generation = std::move(generation).value();
  return result;
}

std::string_view finish_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEndToken:
    case FinishReason::kStopped:
      return "stop";
    case FinishReason::kMaxTokens:
      return "length";
    case FinishReason::kContextFull:
      return "context_full";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "stop";
}

int64_t decode_steps(const Generation& generation) {
  const auto sampled = static_cast<int64_t>(generation.tokens.size()) +
                       (generation.finish == FinishReason::kEndToken ? 1 : 0);
  return std::max<int64_t>(0, sampled - 1);
}

boost::json::object answer_json(const Answer& answer) {
  const Generation& generation = answer.generation;
  boost::json::object json;
  json["text"] = json_text(answer.text);
  json["tokens"] = json_ids(generation.tokens);
  json["finish_reason"] = finish_name(generation.finish);
  if (!answer.matched_stop.empty()) json["stop_string"] = json_text(answer.matched_stop);
  json["counts"] = {{"prompt", generation.prompt_tokens},
                    {"reused", generation.reused_tokens},
                    {"predicted", generation.tokens.size()}};
  json["timings"] = {
      {"ttft_ms", nullptr},
      {"prompt_n", tokens_read(answer)},
      {"prompt_ms", generation.prompt_ms},
      {"prompt_per_second", per_second(tokens_read(answer), generation.prompt_ms)},
      {"predicted_n", generation.tokens.size()},
      {"predicted_ms", generation.predicted_ms},
      {"predicted_per_second", per_second(decode_steps(generation), generation.predicted_ms)},
      {"peak_memory_bytes", peak_resident_bytes()}};
  if (generation.ttft_ms) json["timings"].as_object()["ttft_ms"] = *generation.ttft_ms;
  if (generation.attention.has_selection()) {
    const PromptTimes times = prompt_times(answer);
    json["attention"] = {{"density", generation.attention.density()},
                         {"effective_density", generation.attention.effective_density()},
                         {"select_ms", times.select_ms},
                         {"attend_ms", times.attend_ms},
                         {"rest_ms", times.rest_ms}};
  }
  if (generation.answer_attention.has_selection()) {
    json["decode_attention"] = {
        {"density", generation.answer_attention.density()},
        {"effective_density", generation.answer_attention.effective_density()}};
  }
  return json;
}

std::string answer_summary(const Answer& answer) {
  const Generation& generation = answer.generation;
  const int64_t read = tokens_read(answer);
  char text[256];
  std::snprintf(text, sizeof(text), "prompt %s tokens, %.0f tok/s", grouped(read).c_str(),
                per_second(read, generation.prompt_ms));
  std::string line = text;
  if (generation.reused_tokens > 0) line += ", " + grouped(generation.reused_tokens) + " cached";
  if (generation.attention.has_selection()) {
    const PromptTimes times = prompt_times(answer);
    line +=
        formatted("; density %.3f, effective %.3f: selection %.2f s, attention %.2f s, rest %.2f s",
                  generation.attention.density(), generation.attention.effective_density(),
                  times.select_ms / 1e3, times.attend_ms / 1e3, times.rest_ms / 1e3);
  }
  if (generation.ttft_ms)
    line += formatted("; first token after %.2f s", *generation.ttft_ms / 1e3);
  line += formatted("; answer %s tokens, %.1f tok/s; %s",
                    grouped(static_cast<int64_t>(generation.tokens.size())).c_str(),
                    per_second(decode_steps(generation), generation.predicted_ms),
                    std::string(finish_name(generation.finish)).c_str());
  if (generation.answer_attention.has_selection()) {
    line += formatted("; decode density %.3f", generation.answer_attention.density());
  }
  return line + "; peak memory " + binary_size(peak_resident_bytes());
}

}  // namespace winnow

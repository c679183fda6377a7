#include "server/openai_types.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>

#include "base/utf8.h"

namespace winnow {
namespace {

namespace json = boost::json;

double per_second(int64_t count, double seconds) {
  return count > 0 && seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

double per_token_ms(int64_t count, double seconds) {
  return count > 0 ? seconds * 1e3 / static_cast<double>(count) : 0;
}

void add_speed(json::object& timings, const std::string& what, int64_t count, int64_t steps,
               double seconds) {
  timings[what + "_n"] = count;
  timings[what + "_ms"] = seconds * 1e3;
  timings[what + "_per_token_ms"] = per_token_ms(steps, seconds);
  timings[what + "_per_second"] = per_second(steps, seconds);
}

json::array byte_values(std::string_view bytes) {
  json::array values;
  for (const char c : bytes) values.push_back(static_cast<unsigned char>(c));
  return values;
}

}  // namespace

std::string new_answer_id(std::string_view prefix) {
  static constexpr std::string_view kLetters = "0123456789abcdefghijklmnopqrstuv";
  thread_local std::random_device device;
  std::string id(prefix);
  for (int i = 0; i < 4; ++i) {
    uint32_t bits = device();
    for (int j = 0; j < 6; ++j, bits >>= 5) id += kLetters[bits & 31];
  }
  return id;
}

AnswerHead new_answer_head(std::string_view id_prefix, std::string model) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {.id = new_answer_id(id_prefix),
          .created = std::chrono::duration_cast<std::chrono::seconds>(now).count(),
          .model = std::move(model)};
}

json::object usage_json(const UsageCounts& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"completion_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens}}}};
}

std::string_view finish_reason(const RequestEnd& end) {
  const bool full =
      end.finish == FinishReason::kMaxTokens || end.finish == FinishReason::kContextFull;
  return full ? "length" : "stop";
}

std::string_view chat_finish_reason(const RequestEnd& end, bool called_tools) {
  const std::string_view reason = finish_reason(end);
  return called_tools && reason != "length" ? "tool_calls" : reason;
}

json::value stop_reason(const AnswerEnd& end, const Tokenizer& tokenizer) {
  if (!end.matched_stop.empty()) return json::value(end.matched_stop);
  if (end.end.finish != FinishReason::kEndToken) return nullptr;
  const std::span<const TokenId> ends = tokenizer.end_tokens();
  const bool declared = std::find(ends.begin(), ends.end(), end.end.end_token) != ends.end();
  return declared ? json::value() : json::value(end.end.end_token);
}

json::object timings_json(const RequestEnd& end) {
  const int64_t computed = end.prompt_tokens - end.cached_tokens;
  json::object timings;
  timings["cache_n"] = end.cached_tokens;
  add_speed(timings, "prompt", computed, computed, end.prompt_s);
  // The first token comes with the prompt.
  add_speed(timings, "predicted", end.generated_tokens,
            std::max<int64_t>(0, end.generated_tokens - 1), end.decode_s);
  timings["queue_ms"] = end.queue_s * 1e3;
  timings["preemptions"] = end.num_preemptions;
  if (end.attention.has_selection()) {
    timings["sparse_kept_frac"] = end.attention.density();
  }
  if (end.answer_attention.has_selection()) {
    timings["sparse_decode_kept_frac"] = end.answer_attention.density();
  }
  return timings;
}

json::object timings_json(const AnswerToken& token, int64_t prompt_tokens, int64_t generated) {
  const int64_t computed = prompt_tokens - token.cached_tokens;
  json::object timings;
  timings["cache_n"] = token.cached_tokens;
  add_speed(timings, "prompt", computed, computed, token.prompt_s);
  add_speed(timings, "predicted", generated, generated - 1, token.decode_s);
  return timings;
}

json::object progress_json(const PrefillProgress& progress) {
  return {{"total", progress.total},        {"cache", progress.reused},
          {"processed", progress.done},     {"time_ms", progress.elapsed_s * 1e3},
          {"eta_ms", progress.eta_s * 1e3}, {"kept_share", progress.attention.density()}};
}

std::string token_text(const Tokenizer& tokenizer, TokenId id) {
  const std::string_view piece = tokenizer.piece(id);
  if (valid_utf8_prefix(piece) == piece.size()) return std::string(piece);
  std::string text = "bytes:";
  for (const char c : piece) {
    char byte[8];
    std::snprintf(byte, sizeof(byte), "\\x%02x", static_cast<unsigned char>(c));
    text += byte;
  }
  return text;
}

double shown_logprob(float logprob) {
  constexpr double kLeast = -9999;
  return std::isfinite(logprob) ? std::max(kLeast, static_cast<double>(logprob)) : kLeast;
}

json::object chat_logprob(const Tokenizer& tokenizer, const ScoredToken& token) {
  const auto entry = [&](TokenId id, float logprob) {
    return json::object{{"token", token_text(tokenizer, id)},
                        {"logprob", shown_logprob(logprob)},
                        {"bytes", byte_values(tokenizer.piece(id))}};
  };
  json::object whole = entry(token.token, token.logprob);
  json::array top;
  for (const TokenLogprob& other : token.top) top.push_back(entry(other.token, other.logprob));
  whole["top_logprobs"] = std::move(top);
  return whole;
}

json::array ids_json(const std::vector<TokenId>& ids) {
  return json::array(ids.begin(), ids.end());
}

json::array one_element(json::object element) {
  json::array list;
  list.push_back(std::move(element));
  return list;
}

}  // namespace winnow

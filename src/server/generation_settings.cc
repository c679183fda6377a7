#include "server/generation_settings.h"

#include <algorithm>
#include <charconv>
#include <random>

#include "base/escape.h"

namespace winnow {
namespace {

namespace json = boost::json;

Error bad_bias(std::string_view expected, std::string_view found) {
  return fail(ErrorCode::kInvalidArgument, "logit_bias: expected %s, found %s",
              std::string(expected).c_str(), std::string(found).c_str());
}

Status read_bias(const RequestFields& fields, int32_t vocab_size, SamplerOptions& options) {
  const json::object* biases = fields.object("logit_bias");
  if (biases == nullptr) return Ok{};
  for (const auto& entry : *biases) {
    const std::string_view key(entry.key().data(), entry.key().size());
    TokenId id = -1;
    const auto [stopped, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    // One way to write an id, so that there are no more of them than tokens.
    const bool plain = key.size() == 1 || !key.starts_with('0');
    const bool whole = plain && error == std::errc() && stopped == key.data() + key.size();
    if (!whole || id < 0 || id >= vocab_size) {
      return bad_bias("token ids from 0 to " + std::to_string(vocab_size - 1),
                      "'" + escaped(key, 40) + "'");
    }
    if (!entry.value().is_number()) return bad_bias("numbers", shown_json(entry.value()));
    options.logit_bias.emplace_back(id, static_cast<float>(entry.value().to_number<double>()));
  }
  return Ok{};
}

Status read_sampling(const RequestFields& fields, int32_t vocab_size, SamplerOptions& options) {
  options.temperature = fields.number("temperature").value_or(1);
  options.top_k = static_cast<int32_t>(fields.integer("top_k").value_or(0));
  options.top_p = fields.number("top_p").value_or(1);
  options.min_p = fields.number("min_p").value_or(0);
  options.repetition_penalty = fields.number("repetition_penalty").value_or(1);
  options.presence_penalty = fields.number("presence_penalty").value_or(0);
  options.frequency_penalty = fields.number("frequency_penalty").value_or(0);
  const std::optional<int64_t> seed = fields.integer("seed");
  options.seed = seed ? static_cast<uint64_t>(*seed) : random_seed();
  TRY_STATUS(read_bias(fields, vocab_size, options));
  return validate(options, vocab_size);
}

Status read_ends(const RequestFields& fields, const Tokenizer& tokenizer,
                 GenerationSettings& settings) {
  settings.stops = fields.texts("stop");
  std::erase_if(settings.stops, [](const std::string& stop) { return stop.empty(); });
  for (const std::string& stop : settings.stops) {
    constexpr size_t kMaxStopBytes = 4096;
    if (stop.size() <= kMaxStopBytes) continue;
    return fail(ErrorCode::kInvalidArgument, "stop: expected at most %zu bytes each, found %zu",
                kMaxStopBytes, stop.size());
  }
  settings.end_tokens = fields.integers("stop_token_ids");
  for (const TokenId id : settings.end_tokens) {
    if (id < tokenizer.vocab_size()) continue;
    return fail(ErrorCode::kInvalidArgument,
                "stop_token_ids: expected token ids from 0 to %d, found %d",
                tokenizer.vocab_size() - 1, id);
  }
  if (!fields.flag("ignore_eos").value_or(false)) {
    const std::span<const TokenId> ends = tokenizer.end_tokens();
    settings.end_tokens.insert(settings.end_tokens.end(), ends.begin(), ends.end());
  }
  return Ok{};
}

// Chat: a flag, and a count beside it. Completions: the count itself.
Status read_logprobs(const RequestFields& fields, Endpoint endpoint, GenerationSettings& settings) {
  const json::value* value = fields.find("logprobs");
  if (endpoint == kCompletions && value != nullptr) {
    const std::optional<int64_t> count = whole_number(*value);
    if (!count || *count < 0 || *count > 20) {
      return fail(ErrorCode::kInvalidArgument,
                  "logprobs: expected a whole number from 0 to 20, found %s",
                  shown_json(*value).c_str());
    }
    settings.logprobs = true;
    settings.top_logprobs = static_cast<int32_t>(*count);
  } else if (endpoint == kChat) {
    if (value != nullptr && !value->is_bool()) {
      return fail(ErrorCode::kInvalidArgument, "logprobs: expected true or false, found %s",
                  shown_json(*value).c_str());
    }
    settings.logprobs = value != nullptr && value->get_bool();
    settings.top_logprobs = static_cast<int32_t>(fields.integer("top_logprobs").value_or(0));
    if (settings.top_logprobs > 0 && !settings.logprobs) {
      return fail(ErrorCode::kInvalidArgument,
                  "top_logprobs: expected \"logprobs\": true beside it, found none");
    }
  }
  return Ok{};
}

Status read_prompt_logprobs(const RequestFields& fields, GenerationSettings& settings) {
  const std::optional<int64_t> count = fields.integer("prompt_logprobs");
  if (!count) return Ok{};
  if (settings.stream) {
    return fail(ErrorCode::kInvalidArgument,
                "prompt_logprobs: expected \"stream\": false beside it, found true");
  }
  settings.prompt_logprobs = static_cast<int32_t>(*count);
  return Ok{};
}

Status read_attention(const RequestFields& fields, const AttentionDefaults& defaults,
                      GenerationSettings& settings) {
  const std::string mode = fields.text("attention").value_or(defaults.mode);
  if (mode != "dense" && mode != "sparse" && mode != "auto") {
    return fail(ErrorCode::kInvalidArgument,
                "attention: expected \"dense\", \"sparse\" or \"auto\", found '%s'",
                escaped(mode, 40).c_str());
  }
  // A request that asks for it itself is dense altogether.
  const bool only_answers = mode == "dense" && defaults.rule.decode && !fields.text("attention");
  if (mode == "dense" && !only_answers) return Ok{};
  settings.sparse = defaults.rule;
  settings.sparse->prompt = !only_answers;
  settings.sparse->min_tokens = mode == "auto" ? defaults.auto_min_tokens : 0;
  return Ok{};
}

Status read_stream(const RequestFields& fields, Endpoint endpoint, double ping_interval_s,
                   GenerationSettings& settings) {
  settings.stream = fields.flag("stream").value_or(false);
  if (const json::object* object = fields.object("stream_options")) {
    for (const auto& [name, target] : {std::pair{"include_usage", &settings.include_usage},
                                       {"continuous_usage_stats", &settings.continuous_usage}}) {
      const json::value* value = RequestFields(*object).find(name);
      if (value == nullptr) continue;
      if (!value->is_bool()) {
        return fail(ErrorCode::kInvalidArgument,
                    "stream_options.%s: expected true or false, found %s", name,
                    shown_json(*value).c_str());
      }
      *target = value->get_bool();
    }
  }
  settings.return_progress = fields.flag("return_progress").value_or(false);
  settings.timings_per_token = fields.flag("timings_per_token").value_or(false);
  settings.return_token_ids = fields.flag("return_token_ids").value_or(false);
  settings.record_map = endpoint == kChat && fields.flag("record_map").value_or(false);
  settings.ping_interval_s =
      fields.number("sse_ping_interval").value_or(static_cast<float>(ping_interval_s));
  return Ok{};
}

Status read_counts(const RequestFields& fields, GenerationSettings& settings) {
  std::optional<int64_t> max_tokens = fields.integer("max_tokens");
  // The newer names win.
  for (const char* name : {"max_completion_tokens", "max_output_tokens"}) {
    if (const std::optional<int64_t> newer = fields.integer(name)) max_tokens = newer;
  }
  settings.max_tokens = max_tokens.value_or(-1);
  settings.min_tokens = fields.integer("min_tokens").value_or(0);
  if (max_tokens && settings.min_tokens > *max_tokens) {
    return fail(ErrorCode::kInvalidArgument,
                "min_tokens: expected at most max_tokens = %lld, found %lld",
                static_cast<long long>(*max_tokens), static_cast<long long>(settings.min_tokens));
  }
  settings.n = static_cast<int32_t>(fields.integer("n").value_or(1));
  settings.best_of = static_cast<int32_t>(fields.integer("best_of").value_or(settings.n));
  if (settings.best_of < settings.n) {
    return fail(ErrorCode::kInvalidArgument, "best_of: expected at least n = %d, found %d",
                settings.n, settings.best_of);
  }
  settings.truncate_prompt_tokens = fields.integer("truncate_prompt_tokens");
  if (settings.truncate_prompt_tokens == 0) {
    return fail(ErrorCode::kInvalidArgument,
                "truncate_prompt_tokens: expected -1 or at least 1, found 0");
  }
  return Ok{};
}

// Unambiguous whatever the parts contain.
std::string scope_of(const RequestFields& fields) {
  std::string scope;
  for (const char* name : {"user", "cache_salt"}) {
    const std::string part = fields.text(name).value_or("");
    scope += std::to_string(part.size()) + ":" + part;
  }
  return scope;
}

}  // namespace

uint64_t random_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

Result<GenerationSettings> read_settings(const json::object& request, Endpoint endpoint,
                                         const SettingsContext& context) {
  const RequestFields fields(request, endpoint);
  GenerationSettings settings;
  TRY_STATUS(read_sampling(fields, context.tokenizer.vocab_size(), settings.sampling));
  TRY_STATUS(read_counts(fields, settings));
  TRY_STATUS(read_ends(fields, context.tokenizer, settings));
  TRY_STATUS(read_logprobs(fields, endpoint, settings));
  TRY_STATUS(read_attention(fields, context.attention, settings));
  TRY_STATUS(read_stream(fields, endpoint, context.ping_interval_s, settings));
  TRY_STATUS(read_prompt_logprobs(fields, settings));
  settings.include_stop = fields.flag("include_stop_str_in_output").value_or(false);
  settings.cache_prompt = fields.flag("cache_prompt").value_or(true);
  settings.cache_scope = scope_of(fields);
  if (settings.stream && settings.best_of > settings.n) {
    return fail(ErrorCode::kInvalidArgument,
                "best_of: expected n = %d with stream, which cannot wait for the best, found %d",
                settings.n, settings.best_of);
  }
  return settings;
}

ServiceRequest service_request(const GenerationSettings& settings, std::vector<TokenId> prompt,
                               int32_t choice_idx) {
  ServiceRequest request;
  request.prompt = std::move(prompt);
  request.max_new_tokens = settings.max_tokens;
  request.min_new_tokens = settings.min_tokens;
  request.sampling = settings.sampling;
  // An odd number far from small ones: choices of neighbouring seeds differ too.
  request.sampling.seed += static_cast<uint64_t>(choice_idx) * 0x9E3779B97F4A7C15U;
  request.end_tokens = settings.end_tokens;
  request.sparse = settings.sparse;
  request.cache_scope = settings.cache_scope;
  request.read_cache = settings.cache_prompt;
  request.score_tokens = settings.logprobs || settings.best_of > settings.n;
  request.num_top_logprobs = settings.top_logprobs;
  // Choices of one prompt would all be told the same.
  request.score_prompt = settings.prompt_logprobs && choice_idx == 0;
  request.num_prompt_top_logprobs = settings.prompt_logprobs.value_or(0);
  return request;
}

void truncate_prompt(const GenerationSettings& settings, int64_t context_tokens,
                     std::vector<TokenId>& prompt) {
  if (!settings.truncate_prompt_tokens) return;
  const int64_t wanted = *settings.truncate_prompt_tokens;
  const int64_t kept = wanted < 0 ? context_tokens - 1 : wanted;
  const auto size = static_cast<int64_t>(prompt.size());
  if (size > kept) prompt.erase(prompt.begin(), prompt.begin() + (size - kept));
}

}  // namespace winnow

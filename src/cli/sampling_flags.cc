#include "cli/sampling_flags.h"

#include <charconv>
#include <limits>
#include <random>

#include "base/escape.h"

namespace winnow {
namespace {

constexpr float kMaxPenalty = 100;

template <class T>
bool parse_all(std::string_view text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stopped == end;
}

Result<std::pair<TokenId, float>> parse_bias(const std::string& text) {
  const size_t sign = text.find('=');
  std::pair<TokenId, float> bias;
  if (sign == std::string::npos || !parse_all(std::string_view(text).substr(0, sign), bias.first) ||
      !parse_all(std::string_view(text).substr(sign + 1), bias.second)) {
    return fail(ErrorCode::kInvalidArgument, "--logit-bias: expected TOKEN_ID=NUMBER, found '%s'",
                escaped(text, 60).c_str());
  }
  return bias;
}

}  // namespace

void add_sampling_flags(FlagSet& flags, SamplingFlags& target) {
  SamplerOptions& options = target.options;
  flags.number("--temp", options.temperature, {0, 100}, "0 always takes the likeliest token [0]");
  flags.integer("--top-k", target.top_k, {-1, std::numeric_limits<int32_t>::max()},
                "draw from the K likeliest tokens; 0 = all [0]");
  flags.number("--top-p", options.top_p, {0, 1}, "draw from the likeliest tokens of this mass [1]");
  flags.number("--min-p", options.min_p, {0, 1},
               "drop tokens below this share of the likeliest [0]");
  flags.number("--repeat-penalty", options.repetition_penalty,
               {std::numeric_limits<float>::min(), kMaxPenalty}, "weakens tokens seen before [1]");
  flags.number("--presence-penalty", options.presence_penalty, {-kMaxPenalty, kMaxPenalty},
               "taken from tokens already generated [0]");
  flags.number("--frequency-penalty", options.frequency_penalty, {-kMaxPenalty, kMaxPenalty},
               "taken once per time generated [0]");
  flags.texts("--logit-bias", target.logit_bias, "TOKEN_ID=NUMBER, may be repeated");
  flags.seed("--seed", target.seed, "makes draws repeatable [random]");
  flags.texts("--stop", target.stops, "text that ends the answer, may be repeated");
}

Status check_sampling_flags(const SamplingFlags& flags) {
  for (const std::string& stop : flags.stops) {
    if (stop.empty()) {
      return fail(ErrorCode::kInvalidArgument, "--stop: expected a text, found an empty one");
    }
  }
  for (const std::string& text : flags.logit_bias) TRY_STATUS(parse_bias(text));
  return Ok{};
}

Result<SamplerOptions> sampler_options(const SamplingFlags& flags, int32_t vocab_size) {
  SamplerOptions options = flags.options;
  options.top_k = static_cast<int32_t>(flags.top_k);
  for (const std::string& text : flags.logit_bias) {
    TRY(const auto bias, parse_bias(text));
    options.logit_bias.push_back(bias);
  }
  std::random_device device;
  options.seed = flags.seed.value_or(uint64_t{device()} << 32 | device());
  Status valid = validate(options, vocab_size);
  if (valid.ok()) return options;
  // The other flags' ranges were checked as they were read; this one's depends on the model.
  Error error = valid.error();
  constexpr std::string_view kName = "logit_bias";
  if (error.message.starts_with(kName)) error.message.replace(0, kName.size(), "--logit-bias");
  return error;
}

}  // namespace winnow

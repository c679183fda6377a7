// Links: server
// Any bytes as the body of a request, to every endpoint: refused, or read into settings that the
// sampler takes.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "sampling/sampler.h"
#include "server/chat_request.h"
#include "server/completion_request.h"
#include "server/response_request.h"
#include "tokenizer/tokenizer.h"

namespace {

// A vocabulary of single letters.
std::unique_ptr<winnow::Tokenizer> letters() {
  winnow::Metadata metadata;
  std::vector<std::string> tokens;
  for (char c = '!'; c <= '~'; ++c) tokens.emplace_back(1, c);
  tokens.emplace_back("<|end|>");
  std::vector<int64_t> kinds(tokens.size(), 1);
  kinds.back() = 3;
  metadata.set("tokenizer.ggml.eos_token_id", static_cast<int64_t>(tokens.size() - 1));
  metadata.set("tokenizer.ggml.model", std::string("gpt2"));
  metadata.set("tokenizer.ggml.pre", std::string("gpt-2"));
  metadata.set("tokenizer.ggml.tokens", std::move(tokens));
  metadata.set("tokenizer.ggml.token_type", std::move(kinds));
  metadata.set("tokenizer.ggml.merges", std::vector<std::string>());
  auto made = winnow::Tokenizer::create(metadata);
  CHECK(made.ok());
  return std::move(made).value();
}

void check_settings(const winnow::GenerationSettings& settings,
                    const winnow::Tokenizer& tokenizer) {
  CHECK(winnow::validate(settings.sampling, tokenizer.vocab_size()).ok());
  CHECK(settings.n >= 1 && settings.n <= settings.best_of && settings.best_of <= 16);
  CHECK(settings.top_logprobs >= 0 && settings.top_logprobs <= 20);
  for (const winnow::TokenId id : settings.end_tokens) {
    CHECK(id >= 0 && id < tokenizer.vocab_size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::unique_ptr<winnow::Tokenizer> kTokenizer = letters();
  static const winnow::AttentionDefaults kAttention;
  const winnow::SettingsContext context{*kTokenizer, kAttention};
  const auto request = winnow::parse_json_object({reinterpret_cast<const char*>(data), size});
  if (!request.ok()) return 0;
  if (winnow::check_fields(*request, winnow::kChat).ok()) {
    const auto chat = winnow::read_chat_request(*request, context);
    if (chat.ok()) check_settings(chat->settings, *kTokenizer);
  }
  if (winnow::check_fields(*request, winnow::kResponses).ok()) {
    const auto response = winnow::read_response_request(*request, context);
    if (response.ok()) check_settings(response->settings, *kTokenizer);
  }
  if (!winnow::check_fields(*request, winnow::kCompletions).ok()) return 0;
  const auto completion = winnow::read_completion_request(*request, context);
  if (!completion.ok()) return 0;
  check_settings(completion->settings, *kTokenizer);
  for (const winnow::CompletionPrompt& prompt : completion->prompts) {
    CHECK(!prompt.ids.empty());
    for (const winnow::TokenId id : prompt.ids) CHECK(id >= 0 && id < kTokenizer->vocab_size());
  }
  return 0;
}

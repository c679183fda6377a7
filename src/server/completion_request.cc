#include "server/completion_request.h"

#include "base/utf8.h"

namespace winnow {
namespace {

namespace json = boost::json;

Error bad_prompt(std::string_view expected, std::string_view found) {
  return fail(ErrorCode::kInvalidArgument, "prompt: expected %s, found %s",
              std::string(expected).c_str(), std::string(found).c_str());
}

Result<CompletionPrompt> prompt_of_text(std::string text, bool add_special,
                                        const Tokenizer& tokenizer) {
  CompletionPrompt prompt;
  prompt.ids = raw_prompt_ids(text, add_special, tokenizer);
  if (prompt.ids.empty() && tokenizer.bos()) prompt.ids.push_back(*tokenizer.bos());
  if (prompt.ids.empty()) return bad_prompt("at least one token", "none");
  const std::optional<TokenId> bos = tokenizer.bos();
  prompt.bos_added = bos && prompt.ids.front() == *bos && !text.starts_with(tokenizer.piece(*bos));
  prompt.text = std::move(text);
  return prompt;
}

Result<CompletionPrompt> prompt_of_ids(const json::array& list, const Tokenizer& tokenizer) {
  CompletionPrompt prompt;
  for (const json::value& element : list) {
    const std::optional<int64_t> id = whole_number(element);
    if (!id || *id < 0 || *id >= tokenizer.vocab_size()) {
      return bad_prompt("token ids from 0 to " + std::to_string(tokenizer.vocab_size() - 1),
                        shown_json(element));
    }
    prompt.ids.push_back(static_cast<TokenId>(*id));
  }
  if (prompt.ids.empty()) return bad_prompt("at least one token", "none");
  prompt.text = valid_utf8(tokenizer.decode(prompt.ids, true));
  return prompt;
}

}  // namespace

std::vector<TokenId> raw_prompt_ids(std::string_view text, bool add_special,
                                    const Tokenizer& tokenizer) {
  std::vector<TokenId> ids = tokenizer.encode_with_special(text);
  const std::optional<TokenId> bos = tokenizer.bos();
  if (add_special && tokenizer.adds_bos() && (ids.empty() || ids.front() != *bos)) {
    ids.insert(ids.begin(), *bos);
  }
  return ids;
}

Result<std::vector<CompletionPrompt>> read_prompts(const json::object& request,
                                                   const Tokenizer& tokenizer) {
  constexpr const char* kForms = "a string, token ids, or a list of either";
  const RequestFields fields(request, kCompletions);
  const json::value* value = fields.find("prompt");
  const bool add_special = fields.flag("add_special_tokens").value_or(true);
  std::vector<CompletionPrompt> prompts;
  const auto add = [&](Result<CompletionPrompt> prompt) -> Status {
    if (!prompt.ok()) return prompt.error();
    prompts.push_back(std::move(prompt).value());
    return Ok{};
  };
  if (value == nullptr) return bad_prompt(kForms, "none");
  if (value->is_string()) {
    TRY_STATUS(add(prompt_of_text(std::string(value->get_string()), add_special, tokenizer)));
    return prompts;
  }
  if (!value->is_array()) return bad_prompt(kForms, shown_json(*value));
  const json::array& list = value->get_array();
  if (list.empty()) return bad_prompt(kForms, "an empty list");
  if (!list.front().is_string() && !list.front().is_array()) {
    TRY_STATUS(add(prompt_of_ids(list, tokenizer)));
    return prompts;
  }
  if (static_cast<int64_t>(list.size()) > kMaxChoices) {
    return bad_prompt("at most " + std::to_string(kMaxChoices) + " prompts",
                      std::to_string(list.size()));
  }
  for (const json::value& element : list) {
    if (element.is_string()) {
      TRY_STATUS(add(prompt_of_text(std::string(element.get_string()), add_special, tokenizer)));
    } else if (element.is_array()) {
      TRY_STATUS(add(prompt_of_ids(element.get_array(), tokenizer)));
    } else {
      return bad_prompt("a string or token ids", shown_json(element));
    }
  }
  return prompts;
}

Result<CompletionRequest> read_completion_request(const json::object& request,
                                                  const SettingsContext& context) {
  const RequestFields fields(request, kCompletions);
  CompletionRequest completion;
  TRY(completion.settings, read_settings(request, kCompletions, context));
  if (const std::optional<std::string> suffix = fields.text("suffix"); suffix && !suffix->empty()) {
    return fail(ErrorCode::kUnsupported, "suffix: expected none, found %zu bytes", suffix->size());
  }
  completion.echo = fields.flag("echo").value_or(false);
  TRY(completion.prompts, read_prompts(request, context.tokenizer));
  const auto choices =
      static_cast<int64_t>(completion.prompts.size()) * completion.settings.best_of;
  if (choices > kMaxChoices) {
    return bad_prompt("at most " + std::to_string(kMaxChoices) + " prompts times best_of",
                      std::to_string(choices));
  }
  return completion;
}

}  // namespace winnow

#include "cli/chat_prompt.h"

namespace winnow {
namespace {

constexpr std::string_view kTemplateKey = "tokenizer.chat_template";

std::string piece_or_empty(const Tokenizer& tokenizer, std::optional<TokenId> id) {
  return id ? std::string(tokenizer.piece(*id)) : std::string();
}

}  // namespace

boost::json::object chat_message(std::string_view role, std::string_view content) {
  return {{"role", role}, {"content", content}};
}

ChatPrompt::ChatPrompt(ChatTemplate chat_template, const Tokenizer& tokenizer)
    : template_(std::move(chat_template)), tokenizer_(&tokenizer) {}

Result<ChatPrompt> ChatPrompt::create(const Metadata& metadata, const Tokenizer& tokenizer) {
  if (!has_template(metadata)) {
    return fail(
        ErrorCode::kInvalidArgument,
        "model: expected a chat template, found none: this is a base model, which continues "
        "text; use 'winnow run --raw'");
  }
  TRY(const std::string source, metadata.string(kTemplateKey));
  Result<ChatTemplate> parsed = ChatTemplate::parse(source);
  // The template is the file's: what is wrong with it is no wrong usage.
  if (!parsed.ok()) return Error{ErrorCode::kCorruptFile, parsed.error().message};
  return ChatPrompt(std::move(parsed).value(), tokenizer);
}

bool ChatPrompt::has_template(const Metadata& metadata) { return metadata.has(kTemplateKey); }

Result<RenderedText> ChatPrompt::render(const boost::json::array& messages) const {
  ChatTemplateInput input;
  input.messages = messages;
  input.bos_token = piece_or_empty(*tokenizer_, tokenizer_->bos());
  input.eos_token = piece_or_empty(*tokenizer_, tokenizer_->eos());
  return template_.render(input);
}

Result<std::vector<TokenId>> ChatPrompt::encode(const boost::json::array& messages) const {
  TRY(const RenderedText rendered, render(messages));
  std::vector<TokenId> ids = tokenizer_->encode(rendered);
  const std::optional<TokenId> bos = tokenizer_->bos();
  if (tokenizer_->adds_bos() && bos && (ids.empty() || ids.front() != *bos)) {
    ids.insert(ids.begin(), *bos);
  }
  return ids;
}

}  // namespace winnow

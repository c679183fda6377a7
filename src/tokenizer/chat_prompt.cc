#include "tokenizer/chat_prompt.h"

#include <algorithm>

namespace winnow {
namespace {

constexpr std::string_view kTemplateKey = "tokenizer.chat_template";

// The text of the last message; none if it has none.
std::string last_text(const boost::json::array& messages) {
  const boost::json::object* message = messages.empty() ? nullptr : messages.back().if_object();
  const boost::json::value* content =
      message == nullptr ? nullptr : message->if_contains("content");
  if (content == nullptr) return {};
  if (content->is_string()) return std::string(content->get_string());
  std::string text;
  if (!content->is_array()) return text;
  for (const boost::json::value& part : content->get_array()) {
    const boost::json::object* object = part.if_object();
    const boost::json::value* piece = object == nullptr ? nullptr : object->if_contains("text");
    if (piece != nullptr && piece->is_string()) text += std::string(piece->get_string());
  }
  return text;
}

// Where `part` begins last in `text`, or npos; in linear time, because both come from a client.
// Knuth, Morris and Pratt 1977, backwards.
size_t last_occurrence(std::string_view text, std::string_view part) {
  if (part.empty()) return std::string_view::npos;
  const auto wanted = [part](size_t i) { return part[part.size() - 1 - i]; };
  std::vector<size_t> fallback(part.size());
  for (size_t i = 1, matched = 0; i < part.size(); ++i) {
    while (matched > 0 && wanted(i) != wanted(matched)) matched = fallback[matched - 1];
    if (wanted(i) == wanted(matched)) ++matched;
    fallback[i] = matched;
  }
  for (size_t i = text.size(), matched = 0; i-- > 0;) {
    while (matched > 0 && text[i] != wanted(matched)) matched = fallback[matched - 1];
    if (text[i] == wanted(matched)) ++matched;
    if (matched == part.size()) return i;
  }
  return std::string_view::npos;
}

// Ends `rendered` where `text`, or `text` without the blanks around it, stands last.
Status cut_after(std::string text, RenderedText& rendered) {
  size_t found = last_occurrence(rendered.text, text);
  if (found == std::string::npos) {
    constexpr std::string_view kBlanks = " \t\r\n";
    const size_t begin = text.find_first_not_of(kBlanks);
    if (begin != std::string::npos) {
      text = text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
      found = last_occurrence(rendered.text, text);
    }
  }
  if (found == std::string::npos) {
    return fail(ErrorCode::kInvalidArgument,
                "continue_final_message: expected a last message whose text the template shows, "
                "found none");
  }
  const size_t end = found + text.size();
  rendered.text.resize(end);
  std::erase_if(rendered.template_spans, [end](const ByteSpan& span) { return span.begin >= end; });
  for (ByteSpan& span : rendered.template_spans) span.end = std::min(span.end, end);
  return Ok{};
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

Result<RenderedText> ChatPrompt::render(const boost::json::array& messages,
                                        const ChatPromptOptions& options) const {
  ChatTemplateInput input;
  input.messages = messages;
  input.bos_token = tokenizer_->piece_or_empty(tokenizer_->bos());
  input.eos_token = tokenizer_->piece_or_empty(tokenizer_->eos());
  input.tools = options.tools;
  input.extra = options.extra;
  input.add_generation_prompt = options.add_generation_prompt && !options.continue_final_message;
  TRY(RenderedText rendered, template_.render(input));
  if (options.continue_final_message) TRY_STATUS(cut_after(last_text(messages), rendered));
  return rendered;
}

Result<std::vector<TokenId>> ChatPrompt::encode(const boost::json::array& messages,
                                                const ChatPromptOptions& options) const {
  TRY(const RenderedText rendered, render(messages, options));
  return encode(rendered);
}

std::vector<TokenId> ChatPrompt::encode(const RenderedText& rendered) const {
  std::vector<TokenId> ids = tokenizer_->encode(rendered);
  const std::optional<TokenId> bos = tokenizer_->bos();
  if (tokenizer_->adds_bos() && bos && (ids.empty() || ids.front() != *bos)) {
    ids.insert(ids.begin(), *bos);
  }
  return ids;
}

}  // namespace winnow

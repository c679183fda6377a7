#include "cli/prompt_frame.h"

#include "tokenizer/chat_prompt.h"
#include "tokenizer/chat_template.h"

namespace winnow {
namespace {

constexpr std::string_view kMarker = "WINNOW-MESSAGE";

void append(RenderedText& to, const RenderedText& more) {
  for (const ByteSpan& span : more.template_spans) {
    const ByteSpan moved{span.begin + to.text.size(), span.end + to.text.size()};
    if (!to.template_spans.empty() && to.template_spans.back().end == moved.begin) {
      to.template_spans.back().end = moved.end;
    } else {
      to.template_spans.push_back(moved);
    }
  }
  to.text += more.text;
}

RenderedText slice(const RenderedText& rendered, size_t begin, size_t end) {
  RenderedText part{rendered.text.substr(begin, end - begin), {}};
  for (const ByteSpan& span : rendered.template_spans) {
    const size_t first = std::max(span.begin, begin);
    const size_t last = std::min(span.end, end);
    if (first < last) part.template_spans.push_back({first - begin, last - begin});
  }
  return part;
}

std::vector<TokenId> with_bos(const Tokenizer& tokenizer, std::vector<TokenId> ids) {
  const std::optional<TokenId> bos = tokenizer.bos();
  if (tokenizer.adds_bos() && bos && (ids.empty() || ids.front() != *bos)) {
    ids.insert(ids.begin(), *bos);
  }
  return ids;
}

}  // namespace

Result<PromptFrame> prompt_frame(const Metadata& metadata, const Tokenizer& tokenizer) {
  if (!ChatPrompt::has_template(metadata)) return PromptFrame{{}, {"\n", {}}};
  TRY(const ChatPrompt prompt, ChatPrompt::create(metadata, tokenizer));
  TRY(const RenderedText rendered, prompt.render({chat_message("user", kMarker)}));
  const size_t found = rendered.text.find(kMarker);
  if (found == std::string::npos || rendered.text.find(kMarker, found + 1) != std::string::npos) {
    return fail(ErrorCode::kUnsupported,
                "chat template: expected it to show a user's message once, found it %s",
                found == std::string::npos ? "left out" : "shown twice");
  }
  return PromptFrame{slice(rendered, 0, found),
                     slice(rendered, found + kMarker.size(), rendered.text.size())};
}

std::vector<TokenId> encode_open_prompt(const Tokenizer& tokenizer, const PromptFrame& frame,
                                        std::string_view message) {
  RenderedText text = frame.before;
  text.text += message;
  return with_bos(tokenizer, tokenizer.encode(text));
}

std::vector<TokenId> encode_prompt_end(const Tokenizer& tokenizer, const PromptFrame& frame,
                                       std::string_view rest, std::string_view answer_begin) {
  RenderedText text{std::string(rest), {}};
  append(text, frame.after);
  text.text += answer_begin;
  return tokenizer.encode(text);
}

std::vector<TokenId> encode_prompt(const Tokenizer& tokenizer, const PromptFrame& frame,
                                   std::string_view message, std::string_view answer_begin) {
  RenderedText text = frame.before;
  text.text += message;
  append(text, frame.after);
  text.text += answer_begin;
  return with_bos(tokenizer, tokenizer.encode(text));
}

}  // namespace winnow

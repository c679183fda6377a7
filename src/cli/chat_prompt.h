// ChatPrompt: a conversation as the token ids the model was trained on, by its own template.
#pragma once

#include <boost/json/array.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"
#include "weights/metadata.h"

namespace winnow {

// One message, as templates expect it.
boost::json::object chat_message(std::string_view role, std::string_view content);

class ChatPrompt {
 public:
  // kInvalidArgument if the model has no template: it continues text and holds no conversations.
  // `tokenizer` must outlive this.
  static Result<ChatPrompt> create(const Metadata& metadata, const Tokenizer& tokenizer);

  static bool has_template(const Metadata& metadata);

  // Ends where the answer begins.
  Result<RenderedText> render(const boost::json::array& messages) const;
  // The same as ids. BOS comes first if the model wants it, once.
  Result<std::vector<TokenId>> encode(const boost::json::array& messages) const;

 private:
  ChatPrompt(ChatTemplate chat_template, const Tokenizer& tokenizer);

  ChatTemplate template_;
  const Tokenizer* tokenizer_;
};

}  // namespace winnow

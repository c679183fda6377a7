// ChatPrompt: a conversation as the token ids the model was trained on, by its own template.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"
#include "weights/metadata.h"

namespace winnow {

// One message, as templates expect it.
boost::json::object chat_message(std::string_view role, std::string_view content);

struct ChatPromptOptions {
  boost::json::array tools = {};   // as in ChatTemplateInput
  boost::json::object extra = {};  // as in ChatTemplateInput
  bool add_generation_prompt = true;
  // The answer continues the last message: nothing of the template follows its text.
  bool continue_final_message = false;
};

class ChatPrompt {
 public:
  // kInvalidArgument if the model has no template: it continues text and holds no conversations.
  // `tokenizer` must outlive this.
  static Result<ChatPrompt> create(const Metadata& metadata, const Tokenizer& tokenizer);

  static bool has_template(const Metadata& metadata);

  // Ends where the answer begins. kInvalidArgument for what the template refuses, and for a last
  // message that cannot be continued.
  Result<RenderedText> render(const boost::json::array& messages,
                              const ChatPromptOptions& options = {}) const;
  // The same as ids. BOS comes first if the model wants it, once.
  Result<std::vector<TokenId>> encode(const boost::json::array& messages,
                                      const ChatPromptOptions& options = {}) const;
  // Of what render() made.
  std::vector<TokenId> encode(const RenderedText& rendered) const;

 private:
  ChatPrompt(ChatTemplate chat_template, const Tokenizer& tokenizer);

  ChatTemplate template_;
  const Tokenizer* tokenizer_;
};

}  // namespace winnow

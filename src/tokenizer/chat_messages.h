// The form in which a conversation is shown to a template. Templates disagree about what a message
// looks like, so there are a few forms of the same conversation to try.
#pragma once

#include <boost/json/value.hpp>
#include <vector>

#include "base/result.h"
#include "jinja/value.h"

namespace winnow {

struct MessageForm {
  bool arguments_as_text = false;  // arguments of tool calls: JSON text, not an object
  bool null_as_empty = false;      // content null or missing: "", not None
  bool parts_joined = false;       // content of text parts: one text, not a list
  bool text_as_parts = false;      // content that is a text: a list with one text part
};

// What the messages contain that forms differ in.
struct MessageTraits {
  bool has_arguments = false;
  bool has_null_content = false;
  bool has_parts = false;
};

// kInvalidArgument naming the message and member for what is no message at all; kUnsupported for
// content parts that are not text.
Result<MessageTraits> check_messages(const boost::json::array& messages);

// The messages in the given form; roles that are well known count as written by the template.
// Requires check_messages to have passed; fails if the JSON is nested too deep.
Result<jinja::Value> to_template_messages(const boost::json::array& messages,
                                          const MessageForm& form);

}  // namespace winnow

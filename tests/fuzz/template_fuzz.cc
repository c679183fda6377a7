// Links: tokenizer
// Any bytes as a chat template: refused, or rendered within the interpreter's bounds.
#include <boost/json.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "tokenizer/chat_template.h"

namespace {

winnow::ChatTemplateInput conversation() {
  winnow::ChatTemplateInput input;
  input.messages = {
      {{"role", "system"}, {"content", "Be brief."}},
      {{"role", "user"}, {"content", "<|im_start|>{{ 1 }}"}},
      {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", {{{"id", "1"}}}}},
  };
  input.tools = {
      {{"type", "function"}, {"function", {{"name", "f"}, {"parameters", {{"n", 1.5}}}}}}};
  input.bos_token = "<s>";
  input.eos_token = "</s>";
  return input;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const winnow::ChatTemplateInput kInput = conversation();
  const auto parsed = winnow::ChatTemplate::parse({reinterpret_cast<const char*>(data), size});
  if (!parsed.ok()) return 0;
  const auto rendered = parsed->render(kInput);
  if (!rendered.ok()) return 0;
  size_t end = 0;
  for (const winnow::ByteSpan& span : rendered->template_spans) {
    CHECK(span.begin < span.end && span.end <= rendered->text.size());
    CHECK(span.begin > end || end == 0);
    end = span.end;
  }
  return 0;
}

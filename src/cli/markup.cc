#include "cli/markup.h"

#include "base/utf8.h"

namespace winnow {

std::string markup_text(std::string_view bytes) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  const std::string text = valid_utf8(bytes);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const std::string_view rest = std::string_view(text).substr(i, 3);
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else if (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r') {
      out += kReplacement;
    } else if (rest == "\xEF\xBF\xBE" || rest == "\xEF\xBF\xBF") {
      out += kReplacement;
      i += 2;
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace winnow

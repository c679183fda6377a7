#include "jinja/stringify.h"

#include <utf8proc.h>

#include <charconv>
#include <cmath>
#include <cstdio>

#include "jinja/callable.h"
#include "jinja/errors.h"
#include "jinja/utf8.h"

namespace winnow::jinja {

std::string int_to_string(Int number) {
  __extension__ using Unsigned = unsigned __int128;
  Unsigned left =
      number < 0 ? Unsigned{0} - static_cast<Unsigned>(number) : static_cast<Unsigned>(number);
  std::string digits;
  do {
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(left % 10)));
    left /= 10;
  } while (left != 0);
  return number < 0 ? "-" + digits : digits;
}

std::string float_to_string(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto scientific =
      std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::scientific);
  const std::string text(buffer, scientific.ptr);
  const int exponent = std::stoi(text.substr(text.find('e') + 1));
  if (number != 0 && (exponent < -4 || exponent >= 16)) return text;
  const auto fixed =
      std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::fixed);
  std::string digits(buffer, fixed.ptr);
  if (digits.find('.') == std::string::npos) digits += ".0";
  return digits;
}

namespace {

bool is_printable(int32_t code) {
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    case UTF8PROC_CATEGORY_ZS:
      return code == ' ';
    default:
      return true;
  }
}

void append_escape(std::string& out, int32_t code) {
  char buffer[16];
  const char* format = code < 0x100 ? "\\x%02x" : (code < 0x10000 ? "\\u%04x" : "\\U%08x");
  std::snprintf(buffer, sizeof buffer, format, static_cast<unsigned>(code));
  out += buffer;
}

std::string text_repr(Runtime& runtime, std::string_view text) {
  const bool double_quotes = text.find('\'') != text.npos && text.find('"') == text.npos;
  const char quote = double_quotes ? '"' : '\'';
  std::string out(1, quote);
  runtime.step(text.size() / 4);
  for (size_t at = 0; at < text.size();) {
    runtime.require_room(out.size());
    const Utf8Char c = utf8_at(text, at);
    if (c.code == '\n') {
      out += "\\n";
    } else if (c.code == '\r') {
      out += "\\r";
    } else if (c.code == '\t') {
      out += "\\t";
    } else if (c.code == '\\' || c.code == quote) {
      out += '\\';
      out += static_cast<char>(c.code);
    } else if (c.code >= 0 && !is_printable(c.code)) {
      append_escape(out, c.code);
    } else {
      out.append(text.substr(at, c.num_bytes));
    }
    at += c.num_bytes;
  }
  return out += quote;
}

std::string joined_repr(Runtime& runtime, const std::vector<Value>& items) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    out += repr(runtime, items[i]);
  }
  return out;
}

std::string list_repr(Runtime& runtime, const List& list) {
  switch (list.kind) {
    case ListKind::kList:
      return "[" + joined_repr(runtime, list.items) + "]";
    case ListKind::kTuple:
      return "(" + joined_repr(runtime, list.items) + (list.items.size() == 1 ? ",)" : ")");
    case ListKind::kGenerator:
      return "<generator>";
    default:
      break;
  }
  return std::string(type_name(Value(std::make_shared<List>(list)))) + "([" +
         joined_repr(runtime, list.items) + "])";
}

std::string dict_repr(Runtime& runtime, const Dict& dict) {
  std::string out = "{";
  for (const auto& [key, value] : dict.entries) {
    if (out.size() > 1) out += ", ";
    out += repr(runtime, key) + ": " + repr(runtime, value);
  }
  return out + "}";
}

}  // namespace

std::string repr(Runtime& runtime, const Value& value) {
  const Runtime::Nesting nesting(runtime);
  std::string out;
  if (value.is_undefined()) {
    out = value.as_undefined().forbidden ? "" : "Undefined";
  } else if (value.is_none()) {
    out = "None";
  } else if (value.is_bool()) {
    out = value.truthy() ? "True" : "False";
  } else if (value.is_int()) {
    out = int_to_string(*value.integer());
  } else if (value.is_float()) {
    out = float_to_string(*value.real());
  } else if (const Text* text = value.text()) {
    out = text_repr(runtime, text->view());
  } else if (const List* list = value.list()) {
    out = list_repr(runtime, *list);
  } else if (const Dict* dict = value.dict()) {
    out = dict_repr(runtime, *dict);
  } else if (const Namespace* space = value.space()) {
    out = "<Namespace " + dict_repr(runtime, space->attributes) + ">";
  } else if (const Loop* loop = value.loop()) {
    out = "<LoopContext " + std::to_string(loop->index0 + 1) + "/" + std::to_string(loop->length) +
          ">";
  } else {
    out = "<function " + std::string(value.callable()->name()) + ">";
  }
  runtime.create_bytes(out.size());
  return out;
}

Text to_text(Runtime& runtime, const Value& value) {
  if (const Text* text = value.text()) return *text;
  if (value.is_undefined()) return Text();
  if (value.is_none()) runtime.notes().printed_none = true;
  const bool container = value.list() || value.dict();
  if (container) runtime.notes().printed_container = true;
  return Text(repr(runtime, value), container ? Origin::kData : value.origin());
}

}  // namespace winnow::jinja

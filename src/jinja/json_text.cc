#include "jinja/json_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "jinja/errors.h"
#include "jinja/stringify.h"
#include "jinja/utf8.h"

namespace winnow::jinja {
namespace {

class JsonWriter {
 public:
  JsonWriter(Runtime& runtime, const JsonStyle& style) : runtime_(runtime), style_(style) {}

  void write(const Value& value);
  std::string take() && { return std::move(out_); }

 private:
  void put(std::string_view text);
  void write_text(std::string_view text);
  void write_escaped(uint32_t unit);
  void write_list(const List& list);
  void write_dict(const Dict& dict);
  void write_key(const Value& key);
  void break_line();
  void begin_item(bool first);
  void write_scalar(const Value& value);

  Runtime& runtime_;
  const JsonStyle& style_;
  std::string out_;
  size_t level_ = 0;
};

std::string json_float(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
  return float_to_string(number);
}

void JsonWriter::put(std::string_view text) {
  runtime_.require_room(out_.size() + text.size());
  out_ += text;
}

void JsonWriter::write(const Value& value) {
  const Runtime::Nesting nesting(runtime_);
  const size_t before = out_.size();
  if (const Text* text = value.text()) {
    write_text(text->view());
  } else if (const List* list = value.list();
             list && (list->kind == ListKind::kList || list->kind == ListKind::kTuple)) {
    write_list(*list);
  } else if (const Dict* dict = value.dict()) {
    write_dict(*dict);
  } else {
    write_scalar(value);
  }
  runtime_.create_bytes(out_.size() - before);
}

void JsonWriter::write_scalar(const Value& value) {
  if (value.is_none()) {
    out_ += "null";
  } else if (value.is_bool()) {
    out_ += value.truthy() ? "true" : "false";
  } else if (value.is_int()) {
    out_ += int_to_string(*value.integer());
  } else if (value.is_float()) {
    out_ += json_float(*value.real());
  } else {
    fail_render("Object of type " + std::string(type_name(value)) + " is not JSON serializable");
  }
}

void JsonWriter::write_escaped(uint32_t unit) {
  char buffer[8];
  std::snprintf(buffer, sizeof buffer, "\\u%04x", unit & 0xffff);
  out_ += buffer;
}

void JsonWriter::write_text(std::string_view text) {
  out_ += '"';
  runtime_.step(text.size() / 8);
  for (size_t at = 0; at < text.size();) {
    runtime_.require_room(out_.size());
    const Utf8Char c = utf8_at(text, at);
    const auto code = static_cast<uint32_t>(c.code);
    switch (c.code) {
      case '"':
        out_ += "\\\"";
        break;
      case '\\':
        out_ += "\\\\";
        break;
      case '\n':
        out_ += "\\n";
        break;
      case '\r':
        out_ += "\\r";
        break;
      case '\t':
        out_ += "\\t";
        break;
      case '\f':
        out_ += "\\f";
        break;
      case '\b':
        out_ += "\\b";
        break;
      default:
        if (c.code >= 0 && (code < 0x20 || (style_.ensure_ascii && code >= 0x7f && code < 0x10000 &&
                                            code != 0x7f))) {
          write_escaped(code);
        } else if (c.code >= 0x10000 && style_.ensure_ascii) {
          write_escaped(0xd800 + ((code - 0x10000) >> 10));
          write_escaped(0xdc00 + ((code - 0x10000) & 0x3ff));
        } else {
          out_.append(text.substr(at, c.num_bytes));
        }
    }
    at += c.num_bytes;
  }
  out_ += '"';
}

void JsonWriter::break_line() {
  if (!style_.indent) return;
  out_ += '\n';
  for (size_t i = 0; i < level_; ++i) put(*style_.indent);
}

void JsonWriter::begin_item(bool first) {
  if (!first) put(style_.item_separator);
  break_line();
}

void JsonWriter::write_list(const List& list) {
  if (list.items.empty()) {
    out_ += "[]";
    return;
  }
  out_ += '[';
  ++level_;
  for (size_t i = 0; i < list.items.size(); ++i) {
    begin_item(i == 0);
    write(list.items[i]);
  }
  --level_;
  break_line();
  out_ += ']';
}

void JsonWriter::write_key(const Value& key) {
  if (const Text* text = key.text()) {
    write_text(text->view());
  } else if (key.is_none() || key.is_number()) {
    out_ += '"';
    write_scalar(key);
    out_ += '"';
  } else {
    fail_render("keys must be str, int, float, bool or None, not " + std::string(type_name(key)));
  }
}

void JsonWriter::write_dict(const Dict& dict) {
  if (dict.entries.empty()) {
    out_ += "{}";
    return;
  }
  std::vector<const std::pair<Value, Value>*> entries;
  for (const auto& entry : dict.entries) entries.push_back(&entry);
  if (style_.sort_keys) {
    std::stable_sort(entries.begin(), entries.end(), [this](const auto* a, const auto* b) {
      runtime_.step(std::min(a->first.weight(), b->first.weight()));
      return compare(a->first, b->first, "<") < 0;
    });
  }
  out_ += '{';
  ++level_;
  for (size_t i = 0; i < entries.size(); ++i) {
    begin_item(i == 0);
    write_key(entries[i]->first);
    put(style_.key_separator);
    write(entries[i]->second);
  }
  --level_;
  break_line();
  out_ += '}';
}

}  // namespace

std::string to_json(Runtime& runtime, const Value& value, const JsonStyle& style) {
  JsonWriter writer(runtime, style);
  writer.write(value);
  return std::move(writer).take();
}

}  // namespace winnow::jinja

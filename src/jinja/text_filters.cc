#include <algorithm>

#include "jinja/errors.h"
#include "jinja/filters.h"
#include "jinja/json_text.h"
#include "jinja/operators.h"
#include "jinja/percent_format.h"
#include "jinja/stringify.h"
#include "jinja/text_ops.h"
#include "jinja/utf8.h"

namespace winnow::jinja {
namespace {

// The text of the value, counted as read.
Text soft_text(Runtime& runtime, const Value& self) {
  Text text = to_text(runtime, self);
  runtime.step(text.size() / 8);
  return text;
}

template <Text (*Map)(const Text&)>
Value mapped_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader("filter", args).finish();
  const Text text = soft_text(runtime, self);
  runtime.step(text.size() / 2);
  return runtime.make_text(Map(text));
}

Value trim_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("trim", args);
  const Text* characters = reader.text_or_null("chars");
  reader.finish();
  return runtime.make_text(strip(soft_text(runtime, self), characters, Side::kBoth));
}

// The title filter: upper case at the start and after white space and opening signs.
Text title_by_words(const Text& text) {
  Text out;
  size_t begin = 0;
  const auto is_break = [](char c) {
    return is_space(static_cast<unsigned char>(c)) ||
           std::string_view("-({[<").find(c) != std::string_view::npos;
  };
  const std::string_view view = text.view();
  while (begin < view.size()) {
    size_t end = begin;
    while (end < view.size() && is_break(view[end]) == is_break(view[begin])) ++end;
    out.append(capitalize(text.slice(begin, end)));
    begin = end;
  }
  return out;
}

Value replace_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("replace", args);
  const Text from = to_text(runtime, reader.required("old"));
  const Text to = to_text(runtime, reader.required("new"));
  const Int count = reader.integer_or("count", -1);
  reader.finish();
  return Value(replace(runtime, soft_text(runtime, self), from, to, count));
}

Text indentation(Runtime& runtime, const Value* width) {
  if (!width) return Text("    ", Origin::kTemplate);
  if (width->text()) return *width->text();
  const auto count = width->integer();
  if (!count || *count > 1000)
    fail_render("indent() width must be a string or an integer up to 1000");
  runtime.step();
  return Text(std::string(static_cast<size_t>(std::max(*count, Int{0})), ' '), Origin::kTemplate);
}

Value indent_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("indent", args);
  const Text margin = indentation(runtime, reader.optional("width"));
  const bool first = reader.truth_or("first", false);
  const bool blank = reader.truth_or("blank", false);
  reader.finish();
  Text text = soft_text(runtime, self);
  text.append("\n", Origin::kTemplate);
  const std::vector<Value> lines = split_lines(runtime, text, false);
  Text out;
  for (size_t i = 0; i < lines.size(); ++i) {
    const Text& line = *lines[i].text();
    const bool indented = i == 0 ? first : (blank || !line.empty());
    runtime.create_bytes(line.size() + margin.size() + 1);
    if (i > 0) out.append("\n", Origin::kTemplate);
    if (indented) out.append(margin);
    out.append(line);
  }
  return Value(std::move(out));
}

Value string_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader("string", args).finish();
  if (self.text()) return self;
  return Value(to_text(runtime, self));
}

Value safe_filter(Runtime& runtime, const Value& self, const Args& args) {
  return string_filter(runtime, self, args);
}

Value escape_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader("escape", args).finish();
  const Text text = soft_text(runtime, self);
  runtime.step(text.size());
  runtime.create_bytes(text.size());
  Text out;
  for (size_t at = 0; at < text.size(); ++at) {
    const Origin origin = text.origin_at(at);
    switch (text.view()[at]) {
      case '&':
        out.append("&amp;", origin);
        break;
      case '<':
        out.append("&lt;", origin);
        break;
      case '>':
        out.append("&gt;", origin);
        break;
      case '\'':
        out.append("&#39;", origin);
        break;
      case '"':
        out.append("&#34;", origin);
        break;
      default:
        out.append(text, at, at + 1);
    }
  }
  return runtime.make_text(std::move(out));
}

Value join_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("join", args);
  const Value* separator = reader.optional("d");
  const Value* attribute = reader.optional("attribute");
  reader.finish();
  const std::vector<Value> items = iterate(runtime, self);
  Joined joined(runtime, separator ? to_text(runtime, *separator) : Text());
  for (const Value& item : items) {
    const Value part =
        attribute && !attribute->is_none() ? get_path(runtime, item, *attribute) : item;
    if (const Text* text = part.text()) {
      joined.add(*text);
    } else {
      joined.add(to_text(runtime, part));
    }
  }
  return Value(std::move(joined).take());
}

Value format_filter(Runtime& runtime, const Value& self, const Args& args) {
  const Text format = soft_text(runtime, self);
  if (!args.named.empty() && !args.positional.empty()) {
    fail_render("can't handle positional and keyword arguments at the same time");
  }
  if (args.named.empty()) {
    return Value(percent_format(runtime, format, make_list(args.positional, ListKind::kTuple)));
  }
  auto named = std::make_shared<Dict>();
  for (const auto& [name, value] : args.named) named->set(Value::template_text(name), value);
  return Value(
      percent_format(runtime, format, Value(std::shared_ptr<const Dict>(std::move(named)))));
}

Value center_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("center", args);
  const Int width = reader.integer_or("width", 80);
  reader.finish();
  if (width > 10'000) fail_render("center() width is larger than 10000");
  FieldStyle style;
  style.align = '^';
  style.width = static_cast<size_t>(std::max(width, Int{0}));
  return runtime.make_text(
      format_field(runtime, style, runtime.make_text(soft_text(runtime, self))));
}

Value wordcount_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader("wordcount", args).finish();
  return Value::number(
      static_cast<int64_t>(split(runtime, soft_text(runtime, self), nullptr, -1).size()));
}

Value pprint_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader("pprint", args).finish();
  return Value(Text(repr(runtime, self), Origin::kData));
}

void read_separators(const Value& separators, JsonStyle& style) {
  const List* list = separators.list();
  if (!list || list->items.size() != 2 || !list->items[0].text() || !list->items[1].text()) {
    fail_render("tojson() separators must be two strings");
  }
  style.item_separator = list->items[0].text()->view();
  style.key_separator = list->items[1].text()->view();
}

Value tojson_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("tojson", args);
  JsonStyle style;
  style.ensure_ascii = reader.truth_or("ensure_ascii", false);
  const Value* indent = reader.optional("indent");
  const Value* separators = reader.optional("separators");
  style.sort_keys = reader.truth_or("sort_keys", false);
  reader.finish();
  if (indent && !indent->is_none()) {
    style.indent = std::string(indentation(runtime, indent).view());
    style.item_separator = ",";
  }
  if (separators && !separators->is_none()) read_separators(*separators, style);
  return Value(Text(to_json(runtime, self, style), Origin::kData));
}

}  // namespace

const Filter* find_text_filter(std::string_view name) {
  static constexpr Filter kFilters[] = {
      {"trim", trim_filter},
      {"upper", mapped_filter<to_upper>},
      {"lower", mapped_filter<to_lower>},
      {"capitalize", mapped_filter<capitalize>},
      {"title", mapped_filter<title_by_words>},
      {"replace", replace_filter},
      {"indent", indent_filter},
      {"string", string_filter},
      {"safe", safe_filter},
      {"escape", escape_filter},
      {"e", escape_filter},
      {"forceescape", escape_filter},
      {"join", join_filter},
      {"format", format_filter},
      {"center", center_filter},
      {"wordcount", wordcount_filter},
      {"pprint", pprint_filter},
      {"tojson", tojson_filter},
  };
  return find_filter_in(kFilters, name);
}

}  // namespace winnow::jinja

#include <utf8proc.h>

#include <algorithm>

#include "jinja/errors.h"
#include "jinja/methods.h"
#include "jinja/operators.h"
#include "jinja/percent_format.h"
#include "jinja/str_format.h"
#include "jinja/stringify.h"
#include "jinja/text_ops.h"
#include "jinja/utf8.h"

namespace winnow::jinja {
namespace {

Value strip_method(Runtime& runtime, const Value& self, const Args& args, std::string_view name,
                   Side side) {
  ArgReader reader(name, args);
  const Text* characters = reader.text_or_null("chars");
  reader.finish();
  return runtime.make_text(strip(*self.text(), characters, side));
}

Value strip_both(Runtime& runtime, const Value& self, const Args& args) {
  return strip_method(runtime, self, args, "strip", Side::kBoth);
}
Value strip_left(Runtime& runtime, const Value& self, const Args& args) {
  return strip_method(runtime, self, args, "lstrip", Side::kLeft);
}
Value strip_right(Runtime& runtime, const Value& self, const Args& args) {
  return strip_method(runtime, self, args, "rstrip", Side::kRight);
}

Value split_method(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("split", args);
  const Text* separator = reader.text_or_null("sep");
  const Int max_splits = reader.integer_or("maxsplit", -1);
  reader.finish();
  return make_list(split(runtime, *self.text(), separator, max_splits));
}

Value rsplit_method(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("rsplit", args);
  const Text* separator = reader.text_or_null("sep");
  const Int max_splits = reader.integer_or("maxsplit", -1);
  reader.finish();
  return make_list(rsplit(runtime, *self.text(), separator, max_splits));
}

Value splitlines_method(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("splitlines", args);
  const bool keep_ends = reader.truth_or("keepends", false);
  reader.finish();
  return make_list(split_lines(runtime, *self.text(), keep_ends));
}

const Text& require_text(std::string_view method, const Value& value) {
  require_defined(value);
  if (!value.text()) {
    fail_render(std::string(method) + "() argument must be str, not " +
                std::string(type_name(value)));
  }
  return *value.text();
}

// startswith and endswith: one text or a tuple of them.
Value affix_method(const Value& self, const Args& args, std::string_view name, bool at_start) {
  ArgReader reader(name, args);
  const Value& affix = reader.required("prefix");
  reader.finish();
  const std::string_view view = self.text()->view();
  const auto matches = [&](const Value& candidate) {
    const std::string_view text = require_text(name, candidate).view();
    return at_start ? view.starts_with(text) : view.ends_with(text);
  };
  const List* list = affix.list();
  if (list && list->kind == ListKind::kTuple)
    return std::any_of(list->items.begin(), list->items.end(), matches);
  return matches(affix);
}

Value starts_with(Runtime&, const Value& self, const Args& args) {
  return affix_method(self, args, "startswith", true);
}
Value ends_with(Runtime&, const Value& self, const Args& args) {
  return affix_method(self, args, "endswith", false);
}

Value remove_affix(Runtime& runtime, const Value& self, const Args& args, std::string_view name,
                   bool at_start) {
  ArgReader reader(name, args);
  const std::string_view affix = require_text(name, reader.required("prefix")).view();
  reader.finish();
  const Text& text = *self.text();
  if (at_start && text.view().starts_with(affix))
    return runtime.make_text(text.slice(affix.size(), text.size()));
  if (!at_start && text.view().ends_with(affix))
    return runtime.make_text(text.slice(0, text.size() - affix.size()));
  return self;
}

Value remove_prefix(Runtime& runtime, const Value& self, const Args& args) {
  return remove_affix(runtime, self, args, "removeprefix", true);
}
Value remove_suffix(Runtime& runtime, const Value& self, const Args& args) {
  return remove_affix(runtime, self, args, "removesuffix", false);
}

Value replace_method(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("replace", args);
  const Text& from = require_text("replace", reader.required("old"));
  const Text& to = require_text("replace", reader.required("new"));
  const Int max_count = reader.integer_or("count", -1);
  reader.finish();
  return Value(replace(runtime, *self.text(), from, to, max_count));
}

template <Text (*Map)(const Text&)>
Value mapped_method(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader("str method", args).finish();
  runtime.step(self.text()->size() / 2);
  return runtime.make_text(Map(*self.text()));
}

Value join_method(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("join", args);
  const std::vector<Value> items = iterate(runtime, reader.required("iterable"));
  reader.finish();
  Joined joined(runtime, *self.text());
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].text()) {
      fail_render("sequence item " + std::to_string(i) + ": expected str instance, " +
                  std::string(type_name(items[i])) + " found");
    }
    joined.add(*items[i].text());
  }
  return Value(std::move(joined).take());
}

// The character range [start, end) of a search, as byte offsets.
struct SearchRange {
  std::vector<size_t> offsets;
  size_t begin = 0, end = 0;
};

SearchRange search_range(Runtime& runtime, ArgReader& reader, std::string_view view) {
  count_offsets(runtime, view.size());
  SearchRange range{utf8_offsets(view)};
  const auto length = static_cast<Int>(range.offsets.size() - 1);
  const auto clamp = [&](Int n) {
    return static_cast<size_t>(std::clamp(n < 0 ? n + length : n, Int{0}, length));
  };
  range.begin = clamp(reader.integer_or("start", 0));
  range.end = clamp(reader.integer_or("end", length));
  return range;
}

std::optional<Int> search(Runtime& runtime, const Value& self, const Args& args,
                          std::string_view name, bool last) {
  ArgReader reader(name, args);
  const std::string_view wanted = require_text(name, reader.required("sub")).view();
  const std::string_view view = self.text()->view();
  const SearchRange range = search_range(runtime, reader, view);
  reader.finish();
  if (last) count_backward_search(runtime, view, wanted);
  if (range.begin > range.end) return std::nullopt;
  const size_t begin = range.offsets[range.begin];
  const std::string_view part = view.substr(begin, range.offsets[range.end] - begin);
  const size_t found = last ? part.rfind(wanted) : find_bytes(part, wanted);
  if (found == part.npos) return std::nullopt;
  const auto at = std::lower_bound(range.offsets.begin(), range.offsets.end(), begin + found);
  return static_cast<Int>(at - range.offsets.begin());
}

Value find_method(Runtime& runtime, const Value& self, const Args& args) {
  return search(runtime, self, args, "find", false).value_or(-1);
}
Value rfind_method(Runtime& runtime, const Value& self, const Args& args) {
  return search(runtime, self, args, "rfind", true).value_or(-1);
}
Value index_method(Runtime& runtime, const Value& self, const Args& args) {
  if (const auto found = search(runtime, self, args, "index", false)) return *found;
  fail_render("substring not found");
}

Value count_method(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("count", args);
  const std::string_view wanted = require_text("count", reader.required("sub")).view();
  reader.finish();
  const std::string_view view = self.text()->view();
  runtime.read_bytes(view.size());
  if (wanted.empty()) return Value::number(static_cast<int64_t>(utf8_length(view)) + 1);
  int64_t count = 0;
  for (size_t at = find_bytes(view, wanted); at != view.npos;
       at = find_bytes(view, wanted, at + wanted.size())) {
    runtime.step();
    ++count;
  }
  return Value::number(count);
}

Value partition_method(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("partition", args);
  const Text& separator = require_text("partition", reader.required("sep"));
  reader.finish();
  if (separator.empty()) fail_render("empty separator");
  const Text& text = *self.text();
  const size_t found = find_bytes(text.view(), separator.view());
  std::vector<Value> parts;
  if (found == std::string_view::npos) {
    parts = {self, Value(Text()), Value(Text())};
  } else {
    parts = {runtime.make_text(text.slice(0, found)),
             runtime.make_text(text.slice(found, found + separator.size())),
             runtime.make_text(text.slice(found + separator.size(), text.size()))};
  }
  return make_list(std::move(parts), ListKind::kTuple);
}

Value adjust(Runtime& runtime, const Value& self, const Args& args, std::string_view name,
             char align) {
  ArgReader reader(name, args);
  const Int width = reader.integer_or("width", 0);
  const Text* fill = reader.text_or_null("fillchar");
  reader.finish();
  if (width > 10'000) fail_render(std::string(name) + "() width is larger than 10000");
  FieldStyle style;
  style.align = align;
  style.width = static_cast<size_t>(std::max(width, Int{0}));
  if (fill && fill->size() == 1) style.fill = fill->view()[0];
  return runtime.make_text(format_field(runtime, style, self));
}
Value left_adjust(Runtime& runtime, const Value& self, const Args& args) {
  return adjust(runtime, self, args, "ljust", '<');
}
Value right_adjust(Runtime& runtime, const Value& self, const Args& args) {
  return adjust(runtime, self, args, "rjust", '>');
}
Value center_adjust(Runtime& runtime, const Value& self, const Args& args) {
  return adjust(runtime, self, args, "center", '^');
}

Value zero_fill(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("zfill", args);
  const Int width = reader.integer_or("width", 0);
  reader.finish();
  if (width > 10'000) fail_render("zfill() width is larger than 10000");
  FieldStyle style;
  style.align = '=';
  style.fill = '0';
  style.width = static_cast<size_t>(std::max(width, Int{0}));
  return runtime.make_text(format_field(runtime, style, self));
}

template <bool (*Matches)(int32_t)>
Value all_characters(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader("str method", args).finish();
  const std::string_view view = self.text()->view();
  runtime.step(view.size() / 8);
  for (size_t at = 0; at < view.size();) {
    const Utf8Char c = utf8_at(view, at);
    if (c.code < 0 || !Matches(c.code)) return false;
    at += c.num_bytes;
  }
  return !view.empty();
}

bool is_decimal(int32_t code) { return utf8proc_category(code) == UTF8PROC_CATEGORY_ND; }
bool is_alpha(int32_t code) {
  const auto category = utf8proc_category(code);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}
bool is_alnum(int32_t code) { return is_alpha(code) || is_decimal(code); }

// Whether there are cased letters and all of them are of one case.
template <bool kUpper>
Value has_case(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader("str method", args).finish();
  const std::string_view view = self.text()->view();
  runtime.step(view.size() / 8);
  bool any = false;
  for (size_t at = 0; at < view.size();) {
    const Utf8Char c = utf8_at(view, at);
    const auto category = c.code < 0 ? UTF8PROC_CATEGORY_CN : utf8proc_category(c.code);
    if (category == (kUpper ? UTF8PROC_CATEGORY_LL : UTF8PROC_CATEGORY_LU)) return false;
    any |= category == (kUpper ? UTF8PROC_CATEGORY_LU : UTF8PROC_CATEGORY_LL);
    at += c.num_bytes;
  }
  return any;
}

Value format_method(Runtime& runtime, const Value& self, const Args& args) {
  return Value(str_format(runtime, *self.text(), args));
}

}  // namespace

Method find_text_method(std::string_view name) {
  static constexpr std::pair<std::string_view, Method> kMethods[] = {
      {"strip", strip_both},
      {"lstrip", strip_left},
      {"rstrip", strip_right},
      {"split", split_method},
      {"rsplit", rsplit_method},
      {"splitlines", splitlines_method},
      {"startswith", starts_with},
      {"endswith", ends_with},
      {"removeprefix", remove_prefix},
      {"removesuffix", remove_suffix},
      {"replace", replace_method},
      {"upper", mapped_method<to_upper>},
      {"lower", mapped_method<to_lower>},
      {"casefold", mapped_method<to_lower>},
      {"title", mapped_method<title_by_letters>},
      {"capitalize", mapped_method<capitalize>},
      {"join", join_method},
      {"find", find_method},
      {"rfind", rfind_method},
      {"index", index_method},
      {"count", count_method},
      {"partition", partition_method},
      {"ljust", left_adjust},
      {"rjust", right_adjust},
      {"center", center_adjust},
      {"zfill", zero_fill},
      {"isdigit", all_characters<is_decimal>},
      {"isdecimal", all_characters<is_decimal>},
      {"isnumeric", all_characters<is_decimal>},
      {"isalpha", all_characters<is_alpha>},
      {"isalnum", all_characters<is_alnum>},
      {"isspace", all_characters<is_space>},
      {"isupper", has_case<true>},
      {"islower", has_case<false>},
      {"format", format_method},
  };
  for (const auto& [known, method] : kMethods) {
    if (known == name) return method;
  }
  return nullptr;
}

}  // namespace winnow::jinja

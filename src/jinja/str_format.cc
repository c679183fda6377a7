#include "jinja/str_format.h"

#include <algorithm>
#include <charconv>

#include "jinja/attributes.h"
#include "jinja/errors.h"
#include "jinja/operators.h"
#include "jinja/percent_format.h"

namespace winnow::jinja {
namespace {

std::optional<int64_t> as_index(std::string_view digits) {
  int64_t number = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || read.ec != std::errc() || read.ptr != digits.data() + digits.size())
    return std::nullopt;
  return number;
}

size_t take_number(std::string_view& spec) {
  size_t number = 0;
  while (!spec.empty() && spec[0] >= '0' && spec[0] <= '9') {
    number = number * 10 + static_cast<size_t>(spec[0] - '0');
    if (number > 10'000) fail_render("width or precision of a format is larger than 10000");
    spec.remove_prefix(1);
  }
  return number;
}

FieldStyle parse_spec(std::string_view spec) {
  static constexpr std::string_view kAligns = "<>^=";
  FieldStyle style;
  const auto take = [&](char c) {
    if (spec.empty() || spec[0] != c) return false;
    spec.remove_prefix(1);
    return true;
  };
  if (spec.size() > 1 && kAligns.find(spec[1]) != kAligns.npos) {
    style.fill = spec[0];
    style.align = spec[1];
    spec.remove_prefix(2);
  } else if (!spec.empty() && kAligns.find(spec[0]) != kAligns.npos) {
    style.align = spec[0];
    spec.remove_prefix(1);
  }
  style.plus = take('+');
  if (!style.plus) take('-');
  take('#');
  if (take('0') && !style.align) {
    style.fill = '0';
    style.align = '=';
  }
  style.width = take_number(spec);
  style.thousands = take(',');
  if (take('.')) style.precision = static_cast<int>(take_number(spec));
  if (!spec.empty()) {
    style.conversion = spec[0];
    spec.remove_prefix(1);
  }
  if (!spec.empty() ||
      std::string_view("sdfFeEgGxXobr%").find(style.conversion ? style.conversion : 's') ==
          std::string_view::npos) {
    fail_render("Invalid format specifier");
  }
  return style;
}

class StrFormatter {
 public:
  StrFormatter(Runtime& runtime, const Text& format, const Args& args)
      : runtime_(runtime), format_(format), view_(format.view()), args_(args) {}

  Text run() {
    for (size_t at = 0; at < view_.size();) {
      const size_t brace = std::min(view_.find('{', at), view_.find('}', at));
      if (brace == view_.npos) {
        out_.append(format_, at, view_.size());
        break;
      }
      out_.append(format_, at, brace);
      if (brace + 1 < view_.size() && view_[brace + 1] == view_[brace]) {
        out_.append(format_, brace, brace + 1);
        at = brace + 2;
      } else if (view_[brace] == '}') {
        fail_render("Single '}' encountered in format string");
      } else {
        at = field(brace + 1);
      }
    }
    runtime_.create_bytes(out_.size());
    return std::move(out_);
  }

 private:
  // Replaces the field that begins at `begin`; returns the position after its brace.
  size_t field(size_t begin) {
    const size_t end = view_.find('}', begin);
    if (end == view_.npos) fail_render("expected '}' before end of string");
    std::string_view inside = view_.substr(begin, end - begin);
    if (inside.find('{') != inside.npos)
      fail_render("nested fields in a format string are not supported");
    FieldStyle style;
    if (const size_t colon = inside.find(':'); colon != inside.npos) {
      style = parse_spec(inside.substr(colon + 1));
      inside = inside.substr(0, colon);
    }
    if (const size_t bang = inside.find('!'); bang != inside.npos) {
      style.conversion = inside.substr(bang) == "!r" ? 'r' : 's';
      inside = inside.substr(0, bang);
    }
    const Text text = format_field(runtime_, style, lookup(inside));
    runtime_.create_bytes(text.size());
    out_.append(text);
    return end + 1;
  }

  Value lookup(std::string_view path) {
    const size_t name_end = std::min(path.find_first_of(".["), path.size());
    Value value = argument(path.substr(0, name_end));
    path.remove_prefix(name_end);
    while (!path.empty()) {
      if (path[0] == '.') {
        const size_t end = std::min(path.find_first_of(".[", 1), path.size());
        value = get_attribute(runtime_, value, path.substr(1, end - 1));
        path.remove_prefix(end);
      } else {
        const size_t close = path.find(']');
        if (path[0] != '[' || close == path.npos) fail_render("Missing ']' in format string");
        const std::string_view key = path.substr(1, close - 1);
        const auto index = as_index(key);
        value =
            get_item(runtime_, value, index ? Value::number(*index) : Value::template_text(key));
        path.remove_prefix(close + 1);
      }
      require_defined(value);
    }
    return value;
  }

  Value argument(std::string_view name) {
    const auto index = name.empty() ? std::optional<int64_t>(next_++) : as_index(name);
    if (index) {
      if (*index < 0 || static_cast<size_t>(*index) >= args_.positional.size()) {
        fail_render("Replacement index " + std::to_string(*index) +
                    " out of range for positional args tuple");
      }
      return args_.positional[static_cast<size_t>(*index)];
    }
    for (const auto& [known, value] : args_.named) {
      if (known == name) return value;
    }
    fail_render("format string names '" + std::string(name) + "', which was not given");
  }

  Runtime& runtime_;
  const Text& format_;
  std::string_view view_;
  const Args& args_;
  int64_t next_ = 0;
  Text out_;
};

}  // namespace

Text str_format(Runtime& runtime, const Text& format, const Args& args) {
  runtime.read_bytes(format.size());
  return StrFormatter(runtime, format, args).run();
}

}  // namespace winnow::jinja

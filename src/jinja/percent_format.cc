#include "jinja/percent_format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "jinja/errors.h"
#include "jinja/operators.h"
#include "jinja/stringify.h"
#include "jinja/text_ops.h"
#include "jinja/utf8.h"

namespace winnow::jinja {
namespace {

constexpr size_t kMaxWidth = 10'000;

std::string in_base(Int number, unsigned base, bool upper) {
  if (number == 0) return "0";
  std::string digits;
  for (Int left = number < 0 ? -number : number; left != 0; left /= base) {
    const auto digit = static_cast<unsigned>(left % base);
    digits.insert(digits.begin(), "0123456789abcdef"[digit]);
  }
  if (upper)
    std::transform(digits.begin(), digits.end(), digits.begin(),
                   [](char c) { return static_cast<char>(std::toupper(c)); });
  return number < 0 ? "-" + digits : digits;
}

std::string float_digits(const FieldStyle& style, double number) {
  char format[8] = {'%', '.', '*', style.conversion == '%' ? 'f' : style.conversion, '\0'};
  const double shown = style.conversion == '%' ? number * 100 : number;
  const int precision = style.precision < 0 ? 6 : std::min(style.precision, 1000);
  const int size = std::snprintf(nullptr, 0, format, precision, shown);
  std::string out(static_cast<size_t>(std::max(size, 0)) + 1, '\0');
  std::snprintf(out.data(), out.size(), format, precision, shown);
  out.pop_back();
  return style.conversion == '%' ? out + "%" : out;
}

Int whole_number(const Value& value, char conversion) {
  if (const auto n = value.integer()) return *n;
  if (value.is_float() && std::abs(*value.real()) < 1e18)
    return static_cast<int64_t>(*value.real());
  fail_render(std::string("%") + conversion + " format: a number is required, not " +
              std::string(type_name(value)));
}

std::string with_thousands(std::string digits) {
  size_t end = digits.find('.');
  if (end == digits.npos) end = digits.size();
  const size_t begin = !digits.empty() && digits[0] == '-' ? 1 : 0;
  while (end > begin + 3) {
    end -= 3;
    digits.insert(end, ",");
  }
  return digits;
}

std::string number_text(const FieldStyle& style, const Value& value) {
  const char c = style.conversion;
  std::string out;
  if (c == 'd' || c == 'i' || c == 'u') {
    out = int_to_string(whole_number(value, c));
  } else if (c == 'x' || c == 'X') {
    out = in_base(whole_number(value, c), 16, c == 'X');
  } else if (c == 'o') {
    out = in_base(whole_number(value, c), 8, false);
  } else if (c == 'b') {
    out = in_base(whole_number(value, c), 2, false);
  } else {
    const auto number = value.real();
    if (!number) fail_render("must be real number, not " + std::string(type_name(value)));
    out = float_digits(style, *number);
  }
  if (style.thousands) out = with_thousands(std::move(out));
  if (style.plus && out[0] != '-') out = "+" + out;
  return out;
}

void pad(Text& out, const FieldStyle& style, const Text& body, char default_align) {
  const size_t length = utf8_length(body.view());
  const size_t missing = style.width > length ? style.width - length : 0;
  const char align = style.align ? style.align : default_align;
  const size_t before = align == '>' || align == '=' ? missing : (align == '^' ? missing / 2 : 0);
  size_t sign = 0;
  if (align == '=' && !body.empty() && (body.view()[0] == '-' || body.view()[0] == '+')) sign = 1;
  out.append(body, 0, sign);
  out.append(std::string(before, style.fill), Origin::kTemplate);
  out.append(body, sign, body.size());
  out.append(std::string(missing - before, style.fill), Origin::kTemplate);
}

}  // namespace

Text format_field(Runtime& runtime, const FieldStyle& style, const Value& value) {
  if (style.conversion == '\0' && (style.thousands || style.precision >= 0) && !value.is_bool()) {
    FieldStyle explicit_style = style;
    if (value.is_int()) explicit_style.conversion = 'd';
    if (value.is_float()) explicit_style.conversion = style.precision >= 0 ? 'g' : 'f';
    if (explicit_style.conversion) return format_field(runtime, explicit_style, value);
  }
  Text body;
  const char c = style.conversion;
  const bool is_text = c == 's' || c == 'r' || c == '\0';
  if (c == 'r') {
    body = Text(repr(runtime, value), Origin::kData);
  } else if (is_text) {
    body = to_text(runtime, value);
  } else {
    body = Text(number_text(style, value), value.origin());
  }
  if (is_text && style.precision >= 0) {
    count_offsets(runtime, body.size());
    const std::vector<size_t> offsets = utf8_offsets(body.view());
    const auto keep = std::min(static_cast<size_t>(style.precision), offsets.size() - 1);
    body = body.slice(0, offsets[keep]);
  }
  Text out;
  pad(out, style, body, is_text && !value.is_number() ? '<' : '>');
  return out;
}

namespace {

class PercentFormatter {
 public:
  PercentFormatter(Runtime& runtime, const Text& format, const Value& arguments)
      : runtime_(runtime), format_(format), view_(format.view()), arguments_(arguments) {
    const List* list = arguments.list();
    tuple_ = list && list->kind == ListKind::kTuple ? list : nullptr;
  }

  Text run() {
    size_t plain = 0;
    while (true) {
      at_ = view_.find('%', plain);
      if (at_ == view_.npos) break;
      out_.append(format_, plain, at_);
      ++at_;
      field();
      plain = at_;
    }
    out_.append(format_, plain, view_.size());
    const size_t given =
        tuple_ ? tuple_->items.size() : (arguments_.dict() || arguments_.list() ? num_used_ : 1);
    if (num_used_ < given) fail_render("not all arguments converted during string formatting");
    return std::move(out_);
  }

 private:
  char peek() const {
    if (at_ >= view_.size()) fail_render("incomplete format");
    return view_[at_];
  }

  Value next_argument() {
    if (!tuple_ && num_used_ == 0) {
      ++num_used_;
      return arguments_;
    }
    if (!tuple_ || num_used_ >= tuple_->items.size())
      fail_render("not enough arguments for format string");
    return tuple_->items[num_used_++];
  }

  std::optional<Value> named_argument() {
    if (peek() != '(') return std::nullopt;
    const size_t close = view_.find(')', at_);
    if (close == view_.npos) fail_render("incomplete format key");
    if (!arguments_.dict()) fail_render("format requires a mapping");
    const std::string key(view_.substr(at_ + 1, close - at_ - 1));
    const Value* value = arguments_.dict()->find(std::string_view(key));
    if (!value) fail_render("no key '" + key + "' for format string");
    at_ = close + 1;
    return *value;
  }

  size_t digits() {
    size_t number = 0;
    for (; peek() >= '0' && peek() <= '9'; ++at_) {
      number = number * 10 + static_cast<size_t>(peek() - '0');
      if (number > kMaxWidth) fail_render("width or precision of a format is larger than 10000");
    }
    return number;
  }

  void field() {
    FieldStyle style;
    const std::optional<Value> named = named_argument();
    bool zero = false;
    for (;; ++at_) {
      const char c = peek();
      if (c == '-')
        style.align = '<';
      else if (c == '0')
        zero = true;
      else if (c == '+')
        style.plus = true;
      else if (c != '#' && c != ' ')
        break;
    }
    style.width = digits();
    if (peek() == '.') {
      ++at_;
      style.precision = static_cast<int>(digits());
    }
    style.conversion = peek();
    ++at_;
    if (style.conversion == '%') {
      out_.append("%", format_.origin_at(at_ - 1));
      return;
    }
    if (std::string_view("srdiufFeEgGxXo").find(style.conversion) == std::string_view::npos) {
      fail_render(std::string("unsupported format character '") + style.conversion + "'");
    }
    if (zero && !style.align && style.conversion != 's' && style.conversion != 'r') {
      style.fill = '0';
      style.align = '=';
    } else if (!style.align) {
      style.align = '>';
    }
    const Value value = named ? *named : next_argument();
    const Text text = format_field(runtime_, style, value);
    runtime_.create_bytes(text.size());
    out_.append(text);
  }

  Runtime& runtime_;
  const Text& format_;
  std::string_view view_;
  const Value& arguments_;
  const List* tuple_ = nullptr;
  size_t at_ = 0;
  size_t num_used_ = 0;
  Text out_;
};

}  // namespace

Text percent_format(Runtime& runtime, const Text& format, const Value& arguments) {
  runtime.read_bytes(format.size());
  return PercentFormatter(runtime, format, arguments).run();
}

}  // namespace winnow::jinja

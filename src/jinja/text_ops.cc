#include "jinja/text_ops.h"

#include <utf8proc.h>

#include <algorithm>

#include "jinja/errors.h"
#include "jinja/utf8.h"

namespace winnow::jinja {
namespace {

void append_upper(Text& out, int32_t code, std::string_view bytes, Origin origin) {
  if (code < 0) return out.append(bytes, origin);
  if (code == 0xdf) return out.append("SS", origin);
  std::string upper;
  utf8_append(upper, utf8proc_toupper(code));
  out.append(upper, origin);
}

void append_lower(Text& out, int32_t code, std::string_view bytes, Origin origin) {
  if (code < 0) return out.append(bytes, origin);
  std::string lower;
  utf8_append(lower, utf8proc_tolower(code));
  out.append(lower, origin);
}

bool is_letter(int32_t code) {
  const auto category = utf8proc_category(code);
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
         category == UTF8PROC_CATEGORY_LT;
}

// Calls `append(out, code, bytes, origin)` for every character.
template <class Append>
Text map_characters(const Text& text, Append append) {
  Text out;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = utf8_at(text.view(), at);
    append(out, c.code, text.view().substr(at, c.num_bytes), text.origin_at(at));
    at += c.num_bytes;
  }
  return out;
}

// What a piece of another origin adds to the spans of a text, about.
constexpr size_t kSpanBytes = 2 * sizeof(ByteSpan);

bool strips(const Text* characters, std::string_view character, int32_t code) {
  if (!characters) return is_space(code);
  return characters->view().find(character) != std::string_view::npos;
}

}  // namespace

Text strip(const Text& text, const Text* characters, Side side) {
  constexpr size_t kMostCharacters = 1000;  // each is compared with each of the text
  if (characters && characters->size() > kMostCharacters) {
    fail_render("strip() takes at most " + std::to_string(kMostCharacters) +
                " bytes of characters");
  }
  const std::string_view view = text.view();
  size_t begin = 0;
  size_t end = view.size();
  if (side != Side::kRight) {
    while (begin < end) {
      const Utf8Char c = utf8_at(view, begin);
      if (!strips(characters, view.substr(begin, c.num_bytes), c.code)) break;
      begin += c.num_bytes;
    }
  }
  while (side != Side::kLeft && end > begin) {
    size_t start = end - 1;
    while (start > begin && end - start < 4 &&
           (static_cast<unsigned char>(view[start]) & 0xc0) == 0x80)
      --start;
    Utf8Char c = utf8_at(view, start);
    if (start + c.num_bytes != end) {
      start = end - 1;
      c = {-1, 1};
    }
    if (!strips(characters, view.substr(start, end - start), c.code)) break;
    end = start;
  }
  return text.slice(begin, end);
}

Text replace(Runtime& runtime, const Text& text, const Text& from, const Text& to, Int max_count) {
  runtime.read_bytes(text.size());
  const std::string_view view = text.view();
  Text out;
  size_t at = 0;
  auto may_replace = [&, done = Int{0}]() mutable { return max_count < 0 || done++ < max_count; };
  const auto put_replacement = [&] {
    runtime.step();
    runtime.create_bytes(to.size() + kSpanBytes);
    out.append(to);
  };
  if (from.empty()) {
    // Before every character and at the end.
    while (may_replace()) {
      put_replacement();
      if (at == view.size()) break;
      const size_t end = at + utf8_at(view, at).num_bytes;
      out.append(text, at, end);
      at = end;
    }
  } else {
    while (may_replace()) {
      const size_t found = find_bytes(view, from.view(), at);
      if (found == std::string_view::npos) break;
      out.append(text, at, found);
      put_replacement();
      at = found + from.size();
    }
  }
  out.append(text, at, view.size());
  return out;
}

void count_backward_search(Runtime& runtime, std::string_view text, std::string_view part) {
  // std::string_view::rfind compares the part at every place, 32 bytes or so at a time.
  runtime.step(text.size() / 32 * (1 + part.size() / 32));
}

std::vector<Value> split(Runtime& runtime, const Text& text, const Text* separator,
                         Int max_splits) {
  runtime.read_bytes(text.size());
  const std::string_view view = text.view();
  std::vector<Value> parts;
  const auto put = [&](size_t begin, size_t end) {
    runtime.step();
    parts.push_back(runtime.make_text(text.slice(begin, end)));
  };
  const auto may_split = [&] {
    return max_splits < 0 || static_cast<Int>(parts.size()) < max_splits;
  };
  if (separator) {
    if (separator->empty()) fail_render("empty separator");
    size_t begin = 0;
    while (may_split()) {
      const size_t found = find_bytes(view, separator->view(), begin);
      if (found == view.npos) break;
      put(begin, found);
      begin = found + separator->size();
    }
    put(begin, view.size());
    return parts;
  }
  size_t at = leading_space(view);
  while (at < view.size()) {
    if (!may_split()) {
      put(at, view.size());
      break;
    }
    size_t end = at;
    while (end < view.size()) {
      const Utf8Char c = utf8_at(view, end);
      if (is_space(c.code)) break;
      end += c.num_bytes;
    }
    put(at, end);
    at = end + leading_space(view.substr(end));
  }
  return parts;
}

std::vector<Value> rsplit(Runtime& runtime, const Text& text, const Text* separator,
                          Int max_splits) {
  if (max_splits < 0) return split(runtime, text, separator, max_splits);
  runtime.read_bytes(text.size());
  const std::string_view view = text.view();
  std::vector<Value> parts;
  const auto put = [&](size_t begin, size_t end) {
    runtime.step();
    parts.push_back(runtime.make_text(text.slice(begin, end)));
  };
  size_t end = separator ? view.size() : view.size() - trailing_space(view);
  if (separator && separator->empty()) fail_render("empty separator");
  if (separator) count_backward_search(runtime, view, separator->view());
  bool rest = separator || end > 0;
  while (rest && static_cast<Int>(parts.size()) < max_splits) {
    if (separator) {
      const size_t found = end < separator->size()
                               ? view.npos
                               : view.rfind(separator->view(), end - separator->size());
      if (found == view.npos) break;
      put(found + separator->size(), end);
      end = found;
      continue;
    }
    size_t begin = end;
    while (begin > 0 && trailing_space(view.substr(0, begin)) == 0) --begin;
    put(begin, end);
    end = begin - trailing_space(view.substr(0, begin));
    rest = end > 0;
  }
  if (rest) put(0, end);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<Value> split_lines(Runtime& runtime, const Text& text, bool keep_ends) {
  const std::string_view view = text.view();
  std::vector<Value> lines;
  for (size_t begin = 0; begin < view.size();) {
    size_t end = begin;
    size_t next = view.size();
    for (; end < view.size();) {
      const Utf8Char c = utf8_at(view, end);
      const bool breaks = (c.code >= 0x0a && c.code <= 0x0d) ||
                          (c.code >= 0x1c && c.code <= 0x1e) || c.code == 0x85 ||
                          c.code == 0x2028 || c.code == 0x2029;
      if (breaks) {
        next = end + c.num_bytes;
        if (c.code == '\r' && next < view.size() && view[next] == '\n') ++next;
        break;
      }
      end += c.num_bytes;
    }
    runtime.step();
    lines.push_back(runtime.make_text(text.slice(begin, keep_ends ? next : end)));
    begin = next;
  }
  return lines;
}

void Joined::add(const Text& part) {
  const size_t separator_size = empty_ ? 0 : separator_.size();
  runtime_.create_bytes(part.size() + separator_size + kSpanBytes);
  if (!empty_) out_.append(separator_);
  out_.append(part);
  empty_ = false;
}

Text to_upper(const Text& text) { return map_characters(text, append_upper); }

Text to_lower(const Text& text) { return map_characters(text, append_lower); }

Text capitalize(const Text& text) {
  bool first = true;
  return map_characters(text, [&](Text& out, int32_t code, std::string_view bytes, Origin origin) {
    first ? append_upper(out, code, bytes, origin) : append_lower(out, code, bytes, origin);
    first = false;
  });
}

Text title_by_letters(const Text& text) {
  bool after_letter = false;
  return map_characters(text, [&](Text& out, int32_t code, std::string_view bytes, Origin origin) {
    after_letter ? append_lower(out, code, bytes, origin) : append_upper(out, code, bytes, origin);
    after_letter = code >= 0 && is_letter(code);
  });
}

}  // namespace winnow::jinja

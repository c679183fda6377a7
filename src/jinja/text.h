// Text: a byte string in which every byte is either template-written or data. The template-written
// ranges are kept as spans, so whole strings of one kind cost next to nothing.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/rendered_text.h"

namespace winnow::jinja {

enum class Origin { kTemplate, kData };

class Text {
 public:
  Text() = default;
  Text(std::string bytes, Origin origin);

  std::string_view view() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // Ascending, disjoint, non-adjacent.
  const std::vector<ByteSpan>& template_spans() const { return spans_; }
  // kData if a single byte is.
  Origin origin() const;
  Origin origin_at(size_t at) const;

  void append(const Text& other) { append(other, 0, other.size()); }
  // Appends bytes [begin, end) of `other` with their origins. Requires begin <= end <=
  // other.size().
  void append(const Text& other, size_t begin, size_t end);
  void append(std::string_view bytes, Origin origin);
  Text slice(size_t begin, size_t end) const;

  RenderedText take() && { return {std::move(bytes_), std::move(spans_)}; }

 private:
  void add_span(size_t begin, size_t end);

  std::string bytes_;
  std::vector<ByteSpan> spans_;
};

}  // namespace winnow::jinja

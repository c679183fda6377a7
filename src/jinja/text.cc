#include "jinja/text.h"

#include <algorithm>

namespace winnow::jinja {

Text::Text(std::string bytes, Origin origin) : bytes_(std::move(bytes)) {
  if (origin == Origin::kTemplate) add_span(0, bytes_.size());
}

Origin Text::origin() const {
  if (bytes_.empty()) return Origin::kTemplate;
  const bool whole = spans_.size() == 1 && spans_[0].begin == 0 && spans_[0].end == bytes_.size();
  return whole ? Origin::kTemplate : Origin::kData;
}

Origin Text::origin_at(size_t at) const {
  const auto after =
      std::upper_bound(spans_.begin(), spans_.end(), at,
                       [](size_t value, const ByteSpan& span) { return value < span.end; });
  return after != spans_.end() && after->begin <= at ? Origin::kTemplate : Origin::kData;
}

void Text::append(const Text& other, size_t begin, size_t end) {
  const size_t base = bytes_.size();
  bytes_.append(other.bytes_, begin, end - begin);
  auto span = std::upper_bound(other.spans_.begin(), other.spans_.end(), begin,
                               [](size_t value, const ByteSpan& s) { return value < s.end; });
  for (; span != other.spans_.end() && span->begin < end; ++span) {
    const size_t from = std::max(span->begin, begin);
    const size_t to = std::min(span->end, end);
    add_span(base + (from - begin), base + (to - begin));
  }
}

void Text::append(std::string_view bytes, Origin origin) {
  const size_t base = bytes_.size();
  bytes_.append(bytes);
  if (origin == Origin::kTemplate) add_span(base, bytes_.size());
}

Text Text::slice(size_t begin, size_t end) const {
  Text part;
  part.append(*this, begin, end);
  return part;
}

void Text::add_span(size_t begin, size_t end) {
  if (begin == end) return;
  if (!spans_.empty() && spans_.back().end == begin) {
    spans_.back().end = end;
  } else {
    spans_.push_back({begin, end});
  }
}

}  // namespace winnow::jinja

// RenderedText: text that remembers which characters the template wrote and which came from the
// caller's data.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace winnow {

// Byte range [begin, end) of a text.
struct ByteSpan {
  size_t begin = 0;
  size_t end = 0;
  friend bool operator==(const ByteSpan&, const ByteSpan&) = default;
};

struct RenderedText {
  std::string text;
  // What the template wrote: ascending, disjoint, non-adjacent. Only there may special tokens be
  // recognised.
  std::vector<ByteSpan> template_spans;
};

}  // namespace winnow

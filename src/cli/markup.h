// Text from outside as part of an SVG or HTML file.
#pragma once

#include <string>
#include <string_view>

namespace winnow {

// For element contents and quoted attributes: & < > " ' become entities; what is not UTF-8 and what
// XML does not allow (control characters but tab and line ends, U+FFFE, U+FFFF) becomes U+FFFD.
std::string markup_text(std::string_view bytes);

}  // namespace winnow

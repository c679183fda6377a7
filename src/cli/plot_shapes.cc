#include "cli/plot_shapes.h"

#include "cli/formatted.h"
#include "cli/markup.h"

namespace winnow {
namespace {

// Light, then dark. The colours of the curves can be told apart by people who confuse red and
// green.
constexpr const char* kStyle =
    "<style>\n"
    "text{font:13px system-ui,sans-serif;fill:#222}.page{fill:#fff}.grid{stroke:#ddd}\n"
    ".axis{stroke:#555}.c0{color:#0072b2}.c1{color:#d55e00}.c2{color:#007a55}.c3{color:#a2478a}\n"
    "polyline{fill:none;stroke:currentColor;stroke-width:2}circle{fill:currentColor}\n"
    ".small{font-size:11px}.title{font-size:15px;font-weight:600}\n"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.page{fill:#14171c}.grid{stroke:#333a44}\n"
    ".axis{stroke:#aaa}.c0{color:#56b4e9}.c1{color:#f28e4b}.c2{color:#3ecf9b}.c3{color:#e08fc8}}\n"
    "</style>\n";

}  // namespace

std::string plot_begin(double width, double height) {
  return formatted(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" "
             "height=\"%g\">\n",
             width, height, width, height) +
         kStyle + "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n";
}

std::string plot_line(double x1, double y1, double x2, double y2, const char* kind) {
  return formatted(R"(<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>)", kind, x1, y1,
                   x2, y2) +
         "\n";
}

std::string plot_text(double x, double y, const char* attributes, const std::string& text) {
  return formatted("<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes) + markup_text(text) +
         "</text>\n";
}

}  // namespace winnow

#include "constrain/string_formats.h"

#include <array>

namespace winnow {
namespace {

// Years from 1000 on, no 29th of February; seconds up to 59, at most nine digits of their parts.
#define WINNOW_DATE                                                                            \
  "[1-9][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)" \
  "|02-(0[1-9]|1[0-9]|2[0-8]))"
#define WINNOW_TIME \
  "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define WINNOW_OCTET "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"

struct Format {
  std::string_view name;
  std::string_view pattern;
};

constexpr std::array<Format, 6> kFormats = {{
    {"date", "^" WINNOW_DATE "$"},
    {"time", "^" WINNOW_TIME "$"},
    {"date-time", "^" WINNOW_DATE "T" WINNOW_TIME "$"},
    {"uuid", "^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$"},
    {"ipv4", "^(" WINNOW_OCTET "\\.){3}" WINNOW_OCTET "$"},
    {"email",
     "^[A-Za-z0-9_+-]{1,32}(\\.[A-Za-z0-9_+-]{1,32}){0,3}@"
     "[A-Za-z0-9]{1,32}(-[A-Za-z0-9]{1,32}){0,3}(\\.[A-Za-z0-9]{1,32}){0,3}\\.[A-Za-z]{2,24}$"},
}};

#undef WINNOW_DATE
#undef WINNOW_TIME
#undef WINNOW_OCTET

}  // namespace

std::optional<std::string_view> format_pattern(std::string_view format) {
  for (const Format& known : kFormats) {
    if (known.name == format) return known.pattern;
  }
  return std::nullopt;
}

}  // namespace winnow

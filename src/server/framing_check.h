// Refuses request heads that two parties may read differently: what a proxy takes for one request
// must not be two here.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace winnow {

// Where the head ends: after its first empty line, line ends with or without CR; none if it goes
// on. Looks at the bytes from `scanned` on; those before held no end.
std::optional<size_t> find_head_end(std::string_view bytes, size_t scanned);

// kInvalidArgument naming what is ambiguous: a bare LF or CR, a control character, white space
// before a colon, a folded line, several lengths, a length that is no plain number, a length beside
// an encoding, an encoding other than "chunked", a missing or second Host. Requires a head that
// ends with an empty line.
Status check_framing(std::string_view head);

}  // namespace winnow

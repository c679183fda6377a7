// The text that a model's attention is profiled on where the user gives none: prose, code, tables
// and conversation in about equal parts, so that no prompt is far from all of it.
#pragma once

#include <string_view>

namespace winnow {

std::string_view profile_text();

}  // namespace winnow

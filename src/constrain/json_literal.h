// JSON values as text, written in one way only.
#pragma once

#include <boost/json/value.hpp>
#include <cstddef>
#include <string>

namespace winnow {

// `value` and all values in it. Does not recurse.
size_t num_values(const boost::json::value& value);

// Whether `value` has no more than `max_depth` values within each other. Does not recurse.
bool is_within_depth(const boost::json::value& value, size_t max_depth);

// Without blanks; whole numbers without point or exponent where they are exact. Recurses as deep
// as the value.
std::string json_literal(const boost::json::value& value);

}  // namespace winnow

// allOf: several schemas as one, where their keywords do not meet.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "base/function_ref.h"
#include "base/result.h"

namespace winnow {

// Whether a keyword of a schema says nothing about values.
bool is_annotation(std::string_view keyword);

// The schema that a reference points to.
using ResolveReference = FunctionRef<Result<const boost::json::value*>(std::string_view)>;

// `schema` with its allOf, and those inside it, written out. Properties and required names are
// united; other keywords must be given once, or equally. kUnsupported, naming `path`, otherwise.
// `budget` is counted down with every JSON value that is copied.
Result<boost::json::object> without_all_of(const boost::json::object& schema,
                                           const std::string& path, ResolveReference resolve,
                                           int64_t& budget);

}  // namespace winnow

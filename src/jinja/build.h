// Values for callers outside of src/jinja, who get a Result where the interpreter would throw.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "jinja/value.h"

namespace winnow::jinja {

// Each fails with kInvalidArgument if the value becomes too deep or too heavy.

// Everything in it is data.
Result<Value> from_json(const boost::json::value& json);
Result<Value> build_list(std::vector<Value> items);
// A later entry replaces an earlier one of the same key.
Result<Value> build_dict(std::vector<std::pair<Value, Value>> entries);

// As Python's json.dumps writes it.
Result<std::string> python_json(const boost::json::value& json);

}  // namespace winnow::jinja

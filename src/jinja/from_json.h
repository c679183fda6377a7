// From JSON to values: everything in it is data.
#pragma once

#include <boost/json/value.hpp>

#include "jinja/value.h"

namespace winnow::jinja {

// Fails (TemplateError) if the nesting is too deep.
Value from_json(const boost::json::value& json);

}  // namespace winnow::jinja

#include "jinja/build.h"

#include "jinja/errors.h"
#include "jinja/json_text.h"

namespace winnow::jinja {
namespace {

Value convert(const boost::json::value& json, int depth) {
  if (depth > kMaxValueDepth) {
    fail_render("JSON is nested more than " + std::to_string(kMaxValueDepth) + " deep");
  }
  switch (json.kind()) {
    case boost::json::kind::null:
      return Value(None{}).with_origin(Origin::kData);
    case boost::json::kind::bool_:
      return Value(json.get_bool()).with_origin(Origin::kData);
    case boost::json::kind::int64:
      return Value(Int{json.get_int64()}).with_origin(Origin::kData);
    case boost::json::kind::uint64:
      return Value(Int{json.get_uint64()}).with_origin(Origin::kData);
    case boost::json::kind::double_:
      return Value(json.get_double()).with_origin(Origin::kData);
    case boost::json::kind::string:
      return Value(Text(std::string(json.get_string()), Origin::kData));
    case boost::json::kind::array: {
      std::vector<Value> items;
      for (const auto& item : json.get_array()) items.push_back(convert(item, depth + 1));
      return make_list(std::move(items));
    }
    case boost::json::kind::object:
      break;
  }
  auto dict = std::make_shared<Dict>();
  for (const auto& entry : json.get_object()) {
    dict->set(Value(Text(std::string(entry.key()), Origin::kData)),
              convert(entry.value(), depth + 1));
  }
  return Value(std::shared_ptr<const Dict>(std::move(dict)));
}

// What build() returns, or the error it threw.
template <class Build>
auto caught(const Build& build) -> Result<decltype(build())> {
  try {
    return build();
  } catch (const TemplateError& error) {
    return Error{error.code, error.message};
  }
}

}  // namespace

Result<Value> from_json(const boost::json::value& json) {
  return caught([&] { return convert(json, 1); });
}

Result<Value> build_list(std::vector<Value> items) {
  return caught([&] { return Value(make_list(std::move(items))); });
}

Result<Value> build_dict(std::vector<std::pair<Value, Value>> entries) {
  return caught([&] {
    auto dict = std::make_shared<Dict>();
    for (auto& [key, value] : entries) dict->set(std::move(key), std::move(value));
    return Value(std::shared_ptr<const Dict>(std::move(dict)));
  });
}

Result<std::string> python_json(const boost::json::value& json) {
  return caught([&] {
    Runtime runtime(Limits{}, std::tm{});
    return to_json(runtime, convert(json, 1), JsonStyle{});
  });
}

}  // namespace winnow::jinja

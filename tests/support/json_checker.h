// Whether a JSON value satisfies a schema: a direct reading of the keywords that src/constrain
// knows, written apart from it. For tests; recurses as deep as the value.
#pragma once

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <regex>
#include <string>

namespace winnow::test {

class JsonChecker {
 public:
  explicit JsonChecker(const boost::json::value& root) : root_(root) {}
  bool accepts(const boost::json::value& value) const { return satisfies(value, root_); }

 private:
  using Value = boost::json::value;

  static int64_t num_characters(const std::string& text) {
    return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
  }
  static bool is_integer(const Value& value) {
    return value.is_int64() || value.is_uint64() ||
           (value.is_double() && std::trunc(value.get_double()) == value.get_double());
  }
  static bool has_type(const Value& value, const std::string& type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_bool();
    if (type == "null") return value.is_null();
    return value.is_number() && (type == "number" || is_integer(value));
  }

  template <class Test>
  static bool any(const Value& list, Test test) {
    return std::any_of(list.as_array().begin(), list.as_array().end(), test);
  }
  template <class Test>
  static bool all(const Value& list, Test test) {
    return std::all_of(list.as_array().begin(), list.as_array().end(), test);
  }

  bool satisfies(const Value& value, const Value& schema) const {
    if (schema.is_bool()) return schema.get_bool();
    for (const auto& [keyword, rule] : schema.as_object()) {
      if (!obeys(value, std::string(keyword), rule, schema.as_object())) return false;
    }
    return true;
  }

  bool obeys(const Value& value, const std::string& keyword, const Value& rule,
             const boost::json::object& schema) const {
    const auto against = [&](const Value& other) { return satisfies(value, other); };
    if (keyword == "$ref")
      return against(root_.at_pointer(std::string(rule.as_string()).substr(1)));
    if (keyword == "anyOf") return any(rule, against);
    if (keyword == "oneOf") {
      return std::count_if(rule.as_array().begin(), rule.as_array().end(), against) == 1;
    }
    if (keyword == "allOf") return all(rule, against);
    if (keyword == "enum") return any(rule, [&](const Value& one) { return one == value; });
    if (keyword == "const") return rule == value;
    if (keyword == "type") {
      if (rule.is_string()) return has_type(value, std::string(rule.as_string()));
      return any(rule,
                 [&](const Value& one) { return has_type(value, std::string(one.as_string())); });
    }
    if (value.is_object()) return obeys_as_object(value.as_object(), keyword, rule, schema);
    if (value.is_array()) return obeys_as_array(value.as_array(), keyword, rule, schema);
    if (value.is_string()) return obeys_as_string(std::string(value.as_string()), keyword, rule);
    if (value.is_number()) return obeys_as_number(value.to_number<double>(), keyword, rule);
    return true;
  }

  bool obeys_as_object(const boost::json::object& value, const std::string& keyword,
                       const Value& rule, const boost::json::object& schema) const {
    if (keyword == "required") {
      return all(rule, [&](const Value& name) { return value.contains(name.as_string()); });
    }
    const Value* properties = schema.if_contains("properties");
    for (const auto& [name, member] : value) {
      const Value* own =
          properties == nullptr ? nullptr : properties->as_object().if_contains(name);
      if (keyword == "properties" && own != nullptr && !satisfies(member, *own)) return false;
      if (keyword == "additionalProperties" && own == nullptr && !satisfies(member, rule)) {
        return false;
      }
    }
    return true;
  }

  bool obeys_as_array(const boost::json::array& value, const std::string& keyword,
                      const Value& rule, const boost::json::object& schema) const {
    const auto size = static_cast<double>(value.size());
    if (keyword == "minItems") return size >= rule.to_number<double>();
    if (keyword == "maxItems") return size <= rule.to_number<double>();
    const size_t num_prefix =
        schema.contains("prefixItems") ? schema.at("prefixItems").as_array().size() : 0;
    for (size_t i = 0; i < value.size(); ++i) {
      if (keyword == "prefixItems" && i < num_prefix && !satisfies(value[i], rule.as_array()[i])) {
        return false;
      }
      if (keyword == "items" && i >= num_prefix && !satisfies(value[i], rule)) return false;
    }
    return true;
  }

  static bool obeys_as_string(const std::string& value, const std::string& keyword,
                              const Value& rule) {
    if (keyword == "minLength") return num_characters(value) >= rule.to_number<int64_t>();
    if (keyword == "maxLength") return num_characters(value) <= rule.to_number<int64_t>();
    if (keyword != "pattern") return true;
    // std::regex knows bytes only.
    if (std::any_of(value.begin(), value.end(), [](char c) { return c < 0; })) return true;
    return std::regex_search(value, std::regex(std::string(rule.as_string())));
  }

  static bool obeys_as_number(double value, const std::string& keyword, const Value& rule) {
    if (keyword == "minimum") return value >= rule.to_number<double>();
    if (keyword == "maximum") return value <= rule.to_number<double>();
    if (keyword == "exclusiveMinimum") return value > rule.to_number<double>();
    if (keyword == "exclusiveMaximum") return value < rule.to_number<double>();
    return true;
  }

  const Value& root_;
};

}  // namespace winnow::test

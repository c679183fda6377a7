#include "constrain/schema_merge.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <set>
#include <string_view>
#include <vector>

#include "base/escape.h"
#include "constrain/json_literal.h"

namespace winnow {
namespace {

namespace json = boost::json;

Error conflict(const std::string& path, std::string_view keyword) {
  return fail(ErrorCode::kUnsupported, "schema at '%s': allOf that gives '%s' in two ways",
              path.c_str(), escaped(keyword, 80).c_str());
}

Status unite_properties(json::value& into, const json::value& more, const std::string& path) {
  if (!into.is_object() || !more.is_object()) return conflict(path, "properties");
  for (const auto& [name, schema] : more.get_object()) {
    const auto [known, is_new] = into.get_object().emplace(name, schema);
    if (!is_new && known->value() != schema) return conflict(path, name);
  }
  return Ok{};
}

Status unite_required(json::value& into, const json::value& more, const std::string& path) {
  if (!into.is_array() || !more.is_array()) return conflict(path, "required");
  json::array& names = into.get_array();
  for (const json::value& name : more.get_array()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return Ok{};
}

Status merge(json::object& into, const json::object& part, const std::string& path) {
  for (const auto& [keyword, value] : part) {
    if (keyword == "allOf") continue;
    const auto [known, is_new] = into.emplace(keyword, value);
    if (is_new || is_annotation(keyword)) continue;
    if (keyword == "properties") {
      TRY_STATUS(unite_properties(known->value(), value, path));
    } else if (keyword == "required") {
      TRY_STATUS(unite_required(known->value(), value, path));
    } else if (known->value() != value) {
      return conflict(path, keyword);
    }
  }
  return Ok{};
}

}  // namespace

bool is_annotation(std::string_view keyword) {
  constexpr std::array<std::string_view, 13> kAnnotations = {
      "title",     "description", "default", "examples", "example", "deprecated",  "readOnly",
      "writeOnly", "$schema",     "$id",     "$comment", "$defs",   "definitions",
  };
  return std::find(kAnnotations.begin(), kAnnotations.end(), keyword) != kAnnotations.end();
}

Result<json::object> without_all_of(const json::object& schema, const std::string& path,
                                    ResolveReference resolve, int64_t& budget) {
  json::object merged;
  std::vector<const json::object*> open = {&schema};
  std::set<const json::object*> met;
  size_t num_parts = 0;
  bool closed = false;
  while (!open.empty()) {
    const json::object* part = open.back();
    open.pop_back();
    if (!met.insert(part).second) continue;
    budget -= static_cast<int64_t>(num_values(*part));
    if (budget < 0) {
      return fail(ErrorCode::kInvalidArgument, "schema at '%s': allOf of too many schemas",
                  path.c_str());
    }
    json::object own = *part;
    if (part != &schema && own.contains("$ref")) {
      if (!own.at("$ref").is_string()) return conflict(path, "$ref");
      TRY(const json::value* target, resolve(own.at("$ref").get_string()));
      if (!target->is_object()) return conflict(path, "$ref");
      open.push_back(&target->get_object());
      own.erase("$ref");
    }
    const bool constrains = std::any_of(own.begin(), own.end(), [](const auto& member) {
      return member.key() != "allOf" && !is_annotation(member.key());
    });
    num_parts += constrains;
    closed |= own.contains("additionalProperties");
    TRY_STATUS(merge(merged, own, path));
    const json::value* all_of = part->if_contains("allOf");
    if (all_of == nullptr) continue;
    const json::array* parts = all_of->if_array();
    if (parts == nullptr || parts->empty()) {
      return fail(ErrorCode::kInvalidArgument,
                  "schema at '%s': allOf: expected an array of schemas", path.c_str());
    }
    for (size_t i = parts->size(); i-- > 0;) {
      const json::object* next = (*parts)[i].if_object();
      if (next == nullptr) return conflict(path, "allOf");
      open.push_back(next);
    }
  }
  // Each part's additionalProperties would speak of the others' properties.
  if (closed && num_parts > 1) return conflict(path, "additionalProperties");
  return merged;
}

}  // namespace winnow

#include "constrain/json_literal.h"

#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "constrain/json_rules.h"

namespace winnow {
namespace {

namespace json = boost::json;

std::string double_text(double number) {
  constexpr double kExact = 9007199254740992.0;
  if (std::trunc(number) == number && std::abs(number) <= kExact) {
    return std::to_string(static_cast<int64_t>(number));
  }
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, number).ptr;
  return {text, end};
}

void write(const json::value& value, std::string& out) {
  switch (value.kind()) {
    case json::kind::null:
      out += "null";
      return;
    case json::kind::bool_:
      out += value.get_bool() ? "true" : "false";
      return;
    case json::kind::int64:
      out += std::to_string(value.get_int64());
      return;
    case json::kind::uint64:
      out += std::to_string(value.get_uint64());
      return;
    case json::kind::double_:
      out += double_text(value.get_double());
      return;
    case json::kind::string:
      out += '"' + json_escaped(value.get_string()) + '"';
      return;
    case json::kind::array: {
      const char* separator = "[";
      for (const json::value& item : value.get_array()) {
        out += std::exchange(separator, ",");
        write(item, out);
      }
      out += value.get_array().empty() ? "[]" : "]";
      return;
    }
    case json::kind::object: {
      const char* separator = "{";
      for (const auto& [name, member] : value.get_object()) {
        out += std::exchange(separator, ",");
        out += '"' + json_escaped(name) + "\":";
        write(member, out);
      }
      out += value.get_object().empty() ? "{}" : "}";
      return;
    }
  }
}

}  // namespace

size_t num_values(const json::value& value) {
  size_t count = 0;
  std::vector<const json::value*> open = {&value};
  while (!open.empty()) {
    const json::value* next = open.back();
    open.pop_back();
    ++count;
    if (const json::array* array = next->if_array()) {
      for (const json::value& item : *array) open.push_back(&item);
    } else if (const json::object* object = next->if_object()) {
      for (const auto& member : *object) open.push_back(&member.value());
    }
  }
  return count;
}

bool is_within_depth(const json::value& value, size_t max_depth) {
  std::vector<std::pair<const json::value*, size_t>> open = {{&value, 1}};
  while (!open.empty()) {
    const auto [next, depth] = open.back();
    open.pop_back();
    if (depth > max_depth) return false;
    if (const json::array* array = next->if_array()) {
      for (const json::value& item : *array) open.emplace_back(&item, depth + 1);
    } else if (const json::object* object = next->if_object()) {
      for (const auto& member : *object) open.emplace_back(&member.value(), depth + 1);
    }
  }
  return true;
}

std::string json_literal(const json::value& value) {
  std::string out;
  write(value, out);
  return out;
}

}  // namespace winnow

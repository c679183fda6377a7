// Where tests find golden files.
#pragma once

#include <boost/json.hpp>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/real_models.h"

namespace winnow::test {

inline std::string golden_path(const std::string& name) {
  return WINNOW_SOURCE_DIR "/tests/golden/" + name;
}

// The parsed JSON file tests/golden/`name`; throws if it is missing or broken.
inline boost::json::value load_golden(const std::string& name) {
  std::ifstream file(golden_path(name));
  if (!file) throw std::runtime_error("golden file missing: " + golden_path(name));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return boost::json::parse(text);
}

template <class T>
std::vector<T> numbers(const boost::json::value& array) {
  return boost::json::value_to<std::vector<T>>(array);
}

}  // namespace winnow::test

// Where tests find golden files and real models.
#pragma once

#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace winnow::test {

inline std::string golden_path(const std::string& name) {
  return std::string(WINNOW_SOURCE_DIR) + "/tests/golden/" + name;
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

// Path of a real model file, which tools/get_models fetches; tests that miss it skip by name.
inline std::string model_path(const std::string& file_name) {
  const char* folder = std::getenv("WINNOW_MODELS");
  const char* home = std::getenv("HOME");
  const std::string base = folder != nullptr
                               ? folder
                               : std::string(home != nullptr ? home : "") + "/.cache/winnow/models";
  return base + "/" + file_name;
}

#define SKIP_WITHOUT_MODEL(path)                                                    \
  if (!std::filesystem::exists(path)) {                                             \
    GTEST_SKIP() << "missing model " << (path) << " (tools/get_models fetches it)"; \
  }

}  // namespace winnow::test

// Where tests find real models.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace winnow::test {

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

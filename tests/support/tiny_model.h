// A tiny random llama and prompts for it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "model/model.h"
#include "support/golden.h"

namespace winnow::test {

inline std::shared_ptr<const Model> tiny_model() {
  auto model = Model::load(golden_path("tiny/llama-untied.gguf"));
  EXPECT_TRUE(model.ok()) << model.error().message;
  return std::move(model).value();
}

inline std::vector<TokenId> random_tokens(std::mt19937& random, int64_t count) {
  std::vector<TokenId> tokens(static_cast<size_t>(count));
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 250);
  return tokens;
}

}  // namespace winnow::test

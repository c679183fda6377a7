// The tokenizers of the tiny models, which spell any text.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "support/golden.h"
#include "tokenizer/tokenizer.h"
#include "weights/gguf.h"

namespace winnow::test {

inline std::unique_ptr<Tokenizer> created(const Metadata& metadata) {
  auto tokenizer = Tokenizer::create(metadata);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return std::move(tokenizer).value();
}

struct TinyTokenizer {
  std::unique_ptr<GgufFile> file;
  std::unique_ptr<Tokenizer> tokenizer;
};

// `name` as in tests/golden/tiny, without ending.
inline TinyTokenizer tiny_tokenizer(const std::string& name) {
  auto file = GgufFile::open(golden_path("tiny/" + name + ".gguf"));
  EXPECT_TRUE(file.ok()) << file.error().message;
  auto tokenizer = created((*file)->metadata());
  return {std::move(file).value(), std::move(tokenizer)};
}

}  // namespace winnow::test

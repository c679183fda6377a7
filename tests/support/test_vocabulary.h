// A few tokens of either family, as metadata, for tests.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "weights/metadata.h"

namespace winnow::test {

inline constexpr int64_t kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kByte = 6;

// a = 0, b = 1, c = 2, a blank = 3, ab = 4, abc = 5, " a" = 6, bc = 7, <|im_start|> = 8, <|im_end|>
// = 9, <tool> = 10.
inline Metadata byte_level_vocabulary() {
  Metadata metadata;
  metadata.set("tokenizer.ggml.model", std::string("gpt2"));
  metadata.set("tokenizer.ggml.pre", std::string("gpt-2"));
  metadata.set("tokenizer.ggml.tokens",
               std::vector<std::string>{"a", "b", "c", "\u0120", "ab", "abc", "\u0120a", "bc",
                                        "<|im_start|>", "<|im_end|>", "<tool>"});
  metadata.set("tokenizer.ggml.token_type",
               std::vector<int64_t>{kNormal, kNormal, kNormal, kNormal, kNormal, kNormal, kNormal,
                                    kNormal, kControl, kControl, kUserDefined});
  metadata.set("tokenizer.ggml.merges",
               std::vector<std::string>{"b c", "a b", "ab c", "\u0120 a", "a bc"});
  metadata.set("tokenizer.ggml.bos_token_id", int64_t{8});
  metadata.set("tokenizer.ggml.eos_token_id", int64_t{9});
  return metadata;
}

// <unk> = 0, <s> = 1, </s> = 2, byte b = 3 + b, then a blank = 259, t = 260, h = 261, e = 262, th =
// 263, the = 264, " the" = 265, two blanks = 266 (user-defined).
inline Metadata sentence_piece_vocabulary() {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<int64_t> types = {kUnknown, kControl, kControl};
  for (unsigned byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof(name), "<0x%02X>", byte);
    tokens.emplace_back(name);
    types.push_back(kByte);
  }
  for (const char* piece : {"\u2581", "t", "h", "e", "th", "the", "\u2581the"}) {
    tokens.emplace_back(piece);
    types.push_back(kNormal);
  }
  tokens.emplace_back("  ");
  types.push_back(kUserDefined);
  std::vector<double> scores;
  for (size_t i = 0; i < tokens.size(); ++i) scores.push_back(-static_cast<double>(i));
  Metadata metadata;
  metadata.set("tokenizer.ggml.model", std::string("llama"));
  metadata.set("tokenizer.ggml.tokens", tokens);
  metadata.set("tokenizer.ggml.token_type", types);
  metadata.set("tokenizer.ggml.scores", scores);
  metadata.set("tokenizer.ggml.bos_token_id", int64_t{1});
  metadata.set("tokenizer.ggml.eos_token_id", int64_t{2});
  metadata.set("tokenizer.ggml.unknown_token_id", int64_t{0});
  metadata.set("tokenizer.ggml.add_space_prefix", false);
  return metadata;
}

// `unit` 2, 4, 8 and 16 times, for each of the units.
inline std::vector<std::string> doubled_runs(const std::vector<std::string>& units) {
  std::vector<std::string> runs;
  for (const std::string& unit : units) {
    std::string run = unit;
    for (int i = 0; i < 4; ++i) runs.push_back(run += run);
  }
  return runs;
}

// Pieces for long runs of a, b and blanks.
inline Metadata byte_level_vocabulary_of_runs() {
  std::vector<std::string> tokens = {"a", "b", "\u0120"};
  std::vector<std::string> merges;
  for (const std::string& run : doubled_runs({"a", "ab", "\u0120"})) {
    if (run == "abab") {
      tokens.emplace_back("ab");
      merges.emplace_back("a b");
    }
    tokens.push_back(run);
    merges.push_back(run.substr(0, run.size() / 2) + " " + run.substr(run.size() / 2));
  }
  Metadata metadata;
  metadata.set("tokenizer.ggml.model", std::string("gpt2"));
  metadata.set("tokenizer.ggml.pre", std::string("gpt-2"));
  metadata.set("tokenizer.ggml.token_type", std::vector<int64_t>(tokens.size(), kNormal));
  metadata.set("tokenizer.ggml.tokens", std::move(tokens));
  metadata.set("tokenizer.ggml.merges", std::move(merges));
  return metadata;
}

inline Metadata sentence_piece_vocabulary_of_runs() {
  std::vector<std::string> tokens = {"a", "b", "\u2581", "ab"};
  for (const std::string& run : doubled_runs({"a", "ab", "\u2581"})) tokens.push_back(run);
  std::vector<double> scores;
  for (size_t i = 0; i < tokens.size(); ++i) scores.push_back(-static_cast<double>(i));
  Metadata metadata;
  metadata.set("tokenizer.ggml.model", std::string("llama"));
  metadata.set("tokenizer.ggml.token_type", std::vector<int64_t>(tokens.size(), kNormal));
  metadata.set("tokenizer.ggml.tokens", std::move(tokens));
  metadata.set("tokenizer.ggml.scores", std::move(scores));
  metadata.set("tokenizer.ggml.add_space_prefix", false);
  return metadata;
}

}  // namespace winnow::test

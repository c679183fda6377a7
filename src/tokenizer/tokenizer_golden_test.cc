// Ids, words and streams against what other programs make of the same text:
// tests/golden/tokenizer*.json.
#include <gtest/gtest.h>

#include <regex>

#include "base/utf8.h"
#include "support/golden.h"
#include "support/slow_build.h"
#include "tokenizer/pretokenize.h"
#include "tokenizer/text_stream.h"
#include "tokenizer/tokenizer.h"
#include "weights/gguf.h"

namespace winnow {
namespace {

namespace json = boost::json;
using Ids = std::vector<TokenId>;

constexpr const char* kSmollm2 = "smollm2-135m-instruct-q4_1.gguf";
constexpr const char* kQwen = "qwen2.5-coder-0.5b-instruct.gguf";
constexpr const char* kGemma3 = "gemma-3-270m-q4_k_m.gguf";

std::unique_ptr<Tokenizer> tokenizer_of(const std::string& path) {
  const auto file = GgufFile::open(path);
  EXPECT_TRUE(file.ok()) << file.error().message;
  auto tokenizer = Tokenizer::create((*file)->metadata());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return std::move(tokenizer).value();
}

// The generator of tools/make_tokenizer_golden.py.
class Generator {
 public:
  explicit Generator(uint32_t seed) : state_(seed) {}
  uint32_t below(size_t limit) {
    state_ = state_ * 1664525u + 1013904223u;
    return (state_ >> 8) % static_cast<uint32_t>(limit);
  }

 private:
  uint32_t state_;
};

std::string sample(uint32_t seed, const json::array& fragments) {
  Generator random(seed);
  std::string text;
  const uint32_t count = 1 + random.below(60);
  for (uint32_t i = 0; i < count; ++i) {
    const json::string& fragment = fragments[random.below(fragments.size())].as_string();
    const uint32_t repeats = random.below(8) == 0 ? 1 + random.below(40) : 1;
    for (uint32_t k = 0; k < repeats; ++k) text.append(fragment.data(), fragment.size());
  }
  return text;
}

// FNV-1a over 32-bit little-endian numbers.
class Fnv1a {
 public:
  template <class Number>
  void add(Number number) {
    for (int shift = 0; shift < 32; shift += 8)
      hash_ = (hash_ ^ (static_cast<uint32_t>(number) >> shift & 0xFF)) * 0x100000001B3u;
  }
  std::string text() const {
    char digits[17];
    std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(hash_));
    return digits;
  }

 private:
  uint64_t hash_ = 0xCBF29CE484222325u;
};

std::string fnv1a(const Ids& numbers) {
  Fnv1a hash;
  for (const TokenId number : numbers) hash.add(number);
  return hash.text();
}

// Slow builds take every fourth group of texts.
constexpr uint32_t kGroupStride = kSlowBuild ? 4 : 1;

// Compares numbers_of(text), a vector, for every generated text with the hashes: one for each group
// of texts, over the length and the numbers of each.
template <class NumbersOf>
void expect_group_hashes(const json::value& golden, const json::array& hashes,
                         const NumbersOf& numbers_of) {
  const auto num_samples = golden.at("samples").to_number<uint32_t>();
  const auto group = golden.at("group").to_number<uint32_t>();
  ASSERT_EQ(hashes.size() * group, num_samples);
  for (uint32_t first = 0; first < num_samples; first += kGroupStride * group) {
    Fnv1a hash;
    for (uint32_t i = first; i < first + group; ++i) {
      const auto numbers = numbers_of(sample(i, golden.at("fragments").as_array()));
      hash.add(numbers.size());
      for (const auto number : numbers) hash.add(number);
    }
    EXPECT_EQ(hash.text(), hashes[first / group].as_string()) << "samples from " << first;
  }
}

std::vector<std::string> words_of(const Pretokenizer& pretokenizer, std::string_view text) {
  std::vector<std::string> words;
  PretokenizeScratch scratch;
  pretokenizer.split(text, scratch, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

void expect_ids_of_generated_text(const char* model) {
  const std::string path = test::model_path(model);
  SKIP_WITHOUT_MODEL(path);
  const auto tokenizer = tokenizer_of(path);
  const json::value golden = test::load_golden("tokenizer.json");
  size_t num_bytes = 0;
  expect_group_hashes(golden, golden.at("models").at(model).as_array(),
                      [&](const std::string& text) {
                        num_bytes += text.size();
                        return tokenizer->encode(text);
                      });
  EXPECT_GE(num_bytes, 2'000'000u / kGroupStride);
}

TEST(TokenizerGolden, SmolLm2IdsEqualTheReference) { expect_ids_of_generated_text(kSmollm2); }
TEST(TokenizerGolden, Qwen25IdsEqualTheReference) { expect_ids_of_generated_text(kQwen); }
TEST(TokenizerGolden, Gemma3IdsEqualTheReference) { expect_ids_of_generated_text(kGemma3); }

TEST(TokenizerGolden, WordsOfEveryPatternEqualTheReference) {
  const json::value golden = test::load_golden("tokenizer.json");
  for (const auto& [name, hashes] : golden.at("pretokenizers").as_object()) {
    const auto pretokenizer = Pretokenizer::create(name);
    ASSERT_TRUE(pretokenizer.ok()) << pretokenizer.error().message;
    SCOPED_TRACE(std::string(name));
    expect_group_hashes(golden, hashes.as_array(), [&](const std::string& text) {
      std::vector<uint32_t> ends;
      uint32_t end = 0;
      for (const std::string& word : words_of(*pretokenizer, text))
        ends.push_back(end += static_cast<uint32_t>(word.size()));
      return ends;
    });
  }
}

class TokenizerCases : public testing::Test {
 protected:
  // Calls check(input, expected) for every case of a kind.
  template <class Check>
  void for_each(std::string_view kind, const Check& check) {
    int count = 0;
    for (const json::value& one : cases_.at("cases").as_array()) {
      if (one.at("kind").as_string() != kind) continue;
      SCOPED_TRACE(std::string(one.at("id").as_string()));
      check(one.at("input"), one.at("expected"));
      ++count;
    }
    EXPECT_GT(count, 0);
  }

  const Tokenizer& tokenizer(const json::value& input) {
    const std::string name(input.at("model").as_string());
    std::unique_ptr<Tokenizer>& cached = tokenizers_[name];
    if (cached == nullptr)
      cached = tokenizer_of(test::model_path(name == "gemma3" ? kGemma3 : kSmollm2));
    return *cached;
  }

  json::value cases_ = test::load_golden("tokenizer_cases.json");
  std::map<std::string, std::unique_ptr<Tokenizer>> tokenizers_;
};

#define SKIP_WITHOUT_CASE_MODELS()                \
  SKIP_WITHOUT_MODEL(test::model_path(kSmollm2)); \
  SKIP_WITHOUT_MODEL(test::model_path(kGemma3))

TEST_F(TokenizerCases, TextsGetTheRightIds) {
  SKIP_WITHOUT_CASE_MODELS();
  for_each("tokenize", [&](const json::value& input, const json::value& expected) {
    std::string text;
    bool special = false;
    if (const json::value* body = input.as_object().if_contains("json_body")) {
      boost::system::error_code refused;
      const json::value parsed = json::parse(body->as_string(), refused);
      // A lone surrogate never reaches the tokenizer: the parser refuses the body.
      EXPECT_EQ(refused.failed(), !expected.as_object().contains("ids"));
      if (refused) return;
      text = json::value_to<std::string>(parsed.at("prompt"));
    } else {
      text = json::value_to<std::string>(input.at("text"));
      special = input.at("parse_special").as_bool();
    }
    const Tokenizer& with = tokenizer(input);
    const Ids ids = special ? with.encode_with_special(text) : with.encode(text);
    EXPECT_EQ(ids, test::numbers<TokenId>(expected.at("ids")));
  });
}

TEST_F(TokenizerCases, LongTextsGetTheRightIds) {
  SKIP_WITHOUT_CASE_MODELS();
  for_each("tokenize-limits", [&](const json::value& input, const json::value& expected) {
    std::string text;
    const std::string unit = json::value_to<std::string>(input.at("unit"));
    for (int64_t i = 0; i < input.at("repeat").as_int64(); ++i) text += unit;
    if (input.at("model").as_string() == "both") {
      for (const char* model : {"smollm2", "gemma3"}) {
        const Tokenizer& with = tokenizer({{"model", model}});
        const Ids ids = with.encode_with_special(text);
        EXPECT_EQ(with.decode(ids, true), text);
      }
      return;
    }
    const Ids ids = tokenizer(input).encode(text);
    EXPECT_EQ(static_cast<int64_t>(ids.size()), expected.at("n_ids").as_int64());
    EXPECT_EQ(fnv1a(ids), expected.at("fnv1a").as_string());
  });
}

TEST_F(TokenizerCases, StreamsSendEveryCharacterAsSoonAsItIsWhole) {
  SKIP_WITHOUT_CASE_MODELS();
  for_each("detokenize-stream", [&](const json::value& input, const json::value& expected) {
    TextStream stream(tokenizer(input), {});
    std::vector<std::string> deltas;
    std::string text;
    for (const TokenId id : test::numbers<TokenId>(input.at("ids"))) {
      deltas.push_back(stream.push(id));
      text += deltas.back();
    }
    text += stream.finish();
    const json::object& want = expected.as_object();
    if (const json::value* exact = want.if_contains("text")) {
      EXPECT_EQ(text, exact->as_string());
    }
    if (const json::value* earliest = want.if_contains("deltas_earliest")) {
      EXPECT_EQ(deltas, json::value_to<std::vector<std::string>>(*earliest));
    }
    if (const json::value* pattern = want.if_contains("text_regex")) {
      EXPECT_TRUE(std::regex_match(text, std::regex(json::value_to<std::string>(*pattern))))
          << text;
    }
    if (const json::value* choices = want.if_contains("any_of")) {
      const auto lists = json::value_to<std::vector<std::vector<std::string>>>(*choices);
      EXPECT_NE(std::find(lists.begin(), lists.end(), deltas), lists.end());
    }
  });
}

TEST_F(TokenizerCases, BrokenBytesDecodeToReplacementCharacters) {
  SKIP_WITHOUT_CASE_MODELS();
  for_each("detokenize", [&](const json::value& input, const json::value& expected) {
    const std::string bytes =
        tokenizer(input).decode(test::numbers<TokenId>(input.at("ids")), false);
    EXPECT_EQ(valid_utf8(bytes), expected.at("text").as_string());
  });
}

TEST_F(TokenizerCases, PatternsCutTheRightWords) {
  for_each("pretokenize", [&](const json::value& input, const json::value& expected) {
    const std::string text = json::value_to<std::string>(input.at("text"));
    for (const auto& [name, pieces] : expected.at("pieces").as_object()) {
      const auto pretokenizer = Pretokenizer::create(name);
      ASSERT_TRUE(pretokenizer.ok()) << pretokenizer.error().message;
      EXPECT_EQ(words_of(*pretokenizer, text), json::value_to<std::vector<std::string>>(pieces));
    }
  });
}

}  // namespace
}  // namespace winnow

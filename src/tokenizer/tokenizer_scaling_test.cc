// Long inputs of the unkind sort take time in proportion to their length: eight times the text may
// cost a dozen times the processor time, never sixty-four times.
#include <gtest/gtest.h>

#include <ctime>

#include "support/slow_build.h"
#include "support/test_vocabulary.h"
#include "support/tiny_tokenizer.h"
#include "tokenizer/tokenizer.h"

namespace winnow {
namespace {

using test::created;

constexpr size_t kShortBytes = size_t{1} << (kSlowBuild ? 17 : 20);
constexpr size_t kGrowth = 8;
constexpr double kMaxCostGrowth = 12;

std::string repeated(std::string_view unit, size_t num_bytes) {
  std::string text;
  text.reserve(num_bytes + unit.size());
  while (text.size() < num_bytes) text += unit;
  return text;
}

double processor_seconds(const Tokenizer& tokenizer, const std::string& text) {
  const std::clock_t begin = std::clock();
  EXPECT_FALSE(tokenizer.encode(text).empty());
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

void expect_proportional_cost(const Tokenizer& tokenizer, std::string_view unit) {
  const std::string short_text = repeated(unit, kShortBytes);
  const std::string long_text = repeated(unit, kGrowth * kShortBytes);
  double growth = 0;
  // What else runs on the machine shows in the caches too, so one fair measurement is enough.
  for (int attempt = 0; attempt < 3; ++attempt) {
    const double seconds = processor_seconds(tokenizer, short_text);
    growth = processor_seconds(tokenizer, long_text) / seconds;
    if (growth <= kMaxCostGrowth) return;
  }
  ADD_FAILURE() << "'" << unit << "': eight times the text costs " << growth << " times the time";
}

TEST(TokenizerScaling, ByteLevelCostGrowsWithTheLengthOfOneWord) {
  const auto tokenizer = created(test::byte_level_vocabulary_of_runs());
  expect_proportional_cost(*tokenizer, " ");
}

TEST(TokenizerScaling, SentencePieceCostGrowsWithTheLengthOfOneWord) {
  const auto tokenizer = created(test::sentence_piece_vocabulary_of_runs());
  expect_proportional_cost(*tokenizer, "ab");
}

}  // namespace
}  // namespace winnow

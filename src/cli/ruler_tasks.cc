#include "cli/ruler_tasks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <set>

#include "base/check.h"
#include "cli/random_choice.h"
#include "cli/ruler_needles.h"
#include "cli/word_tables.h"

namespace winnow {
namespace {

template <NeedleHaystack kHaystack, NeedleWord kKey, NeedleWord kValue, size_t kNumKeys = 1,
          size_t kNumValues = 1, size_t kNumQueried = 1>
RulerSample needles(const RulerSize& size, RandomStream random) {
  return make_needle_sample({kHaystack, kKey, kValue, kNumKeys, kNumValues, kNumQueried}, size,
                            random);
}

std::string random_letters(RandomStream& random, size_t count, char first) {
  std::string word;
  for (size_t i = 0; i < count; ++i) word += static_cast<char>(first + below(random, 26));
  return word;
}

// Different words of random letters, in the order drawn.
std::vector<std::string> letter_words(RandomStream& random, size_t count, size_t letters,
                                      char first) {
  std::set<std::string> seen;
  std::vector<std::string> words;
  while (words.size() < count) {
    std::string word = random_letters(random, letters, first);
    if (seen.insert(word).second) words.push_back(std::move(word));
  }
  return words;
}

struct VariableChain {
  std::vector<std::string> names;
  std::string value;
  std::vector<std::string> lines;  // assignments, one line each
};

VariableChain variable_chain(RandomStream& random) {
  constexpr size_t kNumNames = 5;
  VariableChain chain;
  chain.names = letter_words(random, kNumNames, 5, 'A');
  chain.value = std::to_string(10000 + below(random, 90000));
  for (size_t i = 0; i < kNumNames; ++i) {
    chain.lines.push_back("VAR " + chain.names[i] + " = " +
                          (i == 0 ? chain.value : "VAR " + chain.names[i - 1]));
  }
  return chain;
}

std::string tracking_question(const VariableChain& chain, int64_t num_lines, RandomStream& random) {
  const std::vector<std::string> noise(static_cast<size_t>(num_lines), std::string(noise_line()));
  return "Memorize and track the chain of variable assignments hidden in the following text.\n\n" +
         with_planted_lines(noise, chain.lines, random) +
         "\nQuestion: Find all variables that are assigned the value " + chain.value +
         " in the text above.";
}

std::string tracking_answer_begin(const VariableChain& chain) {
  return "Answer: According to the chain of variable assignments in the text above, " +
         std::to_string(chain.names.size()) + " variables are assigned the value " + chain.value +
         ", they are:";
}

RulerSample variable_tracking(const RulerSize& size, RandomStream random) {
  constexpr int64_t kExampleLines = 5;
  const VariableChain chain = variable_chain(random);
  const VariableChain example = variable_chain(random);
  std::string message =
      tracking_question(example, kExampleLines, random) + "\n" + tracking_answer_begin(example);
  for (const std::string& name : example.names) message += " " + name;
  message += "\n\n" + tracking_question(chain, size.num_units, random);
  return {std::move(message), tracking_answer_begin(chain), chain.names};
}

// Single words; once they are used up, two in one.
std::string list_word(size_t idx) {
  const size_t num_nouns = nouns().size();
  CHECK(num_nouns > 1);
  if (idx < num_nouns) return std::string(nouns()[idx]);
  idx -= num_nouns;
  if (idx < adjectives().size()) return std::string(adjectives()[idx]);
  idx -= adjectives().size();
  std::string word(nouns()[idx % num_nouns]);
  do {
    idx /= num_nouns;
    word += nouns()[idx % num_nouns];
  } while (idx >= num_nouns);
  return word;
}

// A numbered list of words [first, first + num_common + num_other), the common ones `common_times`.
struct WordList {
  size_t num_common = 10;
  size_t num_other = 0;
  size_t common_times = 0;
  size_t other_times = 0;
};

std::string word_list_question(std::span<const std::string> words, const WordList& list,
                               RandomStream& random) {
  std::vector<std::string> entries;
  for (size_t i = 0; i < list.num_common + list.num_other; ++i) {
    const size_t times = i < list.num_common ? list.common_times : list.other_times;
    entries.insert(entries.end(), times, words[i]);
  }
  shuffle(entries, random);
  std::string text =
      "Below is a numbered list of words. In these words, some appear more often than others. "
      "Memorize the ones that appear most often.\n";
  for (size_t i = 0; i < entries.size(); ++i) {
    text += std::to_string(i + 1) + ". " + entries[i] + " ";
  }
  return text + "\nQuestion: What are the 10 most common words in the above list?";
}

constexpr std::string_view kCommonWordsAnswer =
    "Answer: The top 10 words that appear most often in the list are:";

RulerSample common_words(const RulerSize& size, RandomStream random) {
  const bool is_short = size.num_tokens < 4096;
  const WordList example_list = is_short ? WordList{10, 10, 3, 1} : WordList{10, 30, 10, 3};
  const WordList list{10, static_cast<size_t>(size.num_units), is_short ? 6U : 30U,
                      is_short ? 1U : 3U};
  // The references are drawn first: they do not depend on the size.
  std::vector<std::string> words;
  const size_t num_single = nouns().size() + adjectives().size();
  for (const size_t idx : distinct_below(random, num_single, num_single)) {
    words.push_back(list_word(idx));
  }
  const size_t example_size = example_list.num_common + example_list.num_other;
  const std::vector<std::string> example_words(words.end() - static_cast<ptrdiff_t>(example_size),
                                               words.end());
  for (size_t i = num_single; i < list.num_common + list.num_other; ++i) {
    words.push_back(list_word(i));
  }
  RulerSample sample;
  sample.references.assign(words.begin(), words.begin() + 10);
  std::string message = word_list_question(example_words, example_list, random) + "\n" +
                        std::string(kCommonWordsAnswer);
  for (size_t i = 0; i < 10; ++i) message += " " + std::to_string(i + 1) + ". " + example_words[i];
  sample.message = message + "\n\n" + word_list_question(words, list, random);
  sample.answer_begin = kCommonWordsAnswer;
  return sample;
}

// Coded words whose counts fall with the square of their rank; the most frequent one is noise.
RulerSample frequent_words(const RulerSize& size, RandomStream random) {
  constexpr int64_t kTokensPerWord = 50;
  constexpr double kZetaOf2 = std::numbers::pi * std::numbers::pi / 6;
  const auto num_ranks =
      static_cast<size_t>(std::max<int64_t>(4, size.num_tokens / kTokensPerWord));
  std::vector<std::string> words = letter_words(random, num_ranks, 6, 'a');
  words[0] = "...";
  std::vector<std::string> text_words;
  for (size_t rank = 1; rank <= num_ranks; ++rank) {
    const auto order = static_cast<double>(rank);
    const double count = static_cast<double>(size.num_units) / (order * order * kZetaOf2);
    text_words.insert(text_words.end(), static_cast<size_t>(count), words[rank - 1]);
  }
  shuffle(text_words, random);
  RulerSample sample;
  sample.references.assign(words.begin() + 1, words.begin() + 4);
  sample.message =
      "Read the following coded text and track the frequency of each coded word. Find the three "
      "most frequently appeared coded words.\n";
  for (const std::string& word : text_words) sample.message += word + " ";
  sample.message +=
      "\nQuestion: Do not provide any explanation. Please ignore the dots '...'. What are the "
      "three most frequently appeared words in the above coded text?";
  sample.answer_begin =
      "Answer: According to the coded text above, the three most frequently appeared words are:";
  return sample;
}

using enum NeedleHaystack;
using enum NeedleWord;

constexpr std::array<RulerTask, 11> kTasks = {{
    {"niah_single_1", 128, needles<kNoise, kName, kNumber>},
    {"niah_single_2", 128, needles<kEssay, kName, kNumber>},
    {"niah_single_3", 128, needles<kEssay, kName, kUuid>},
    {"niah_multikey_1", 128, needles<kEssay, kName, kNumber, 4>},
    {"niah_multikey_2", 128, needles<kNeedles, kName, kNumber>},
    {"niah_multikey_3", 128, needles<kNeedles, kUuid, kUuid>},
    {"niah_multivalue", 128, needles<kEssay, kName, kNumber, 1, 4>},
    {"niah_multiquery", 128, needles<kEssay, kName, kNumber, 4, 1, 4>},
    {"vt", 30, variable_tracking},
    {"cwe", 120, common_words},
    {"fwe", 50, frequent_words},
}};

}  // namespace

std::span<const RulerTask> ruler_tasks() { return kTasks; }

Result<RulerPrompt> make_ruler_prompt(const RulerTask& task, const Tokenizer& tokenizer,
                                      const PromptFrame& frame, std::string_view essay,
                                      int64_t num_tokens, uint64_t seed) {
  const auto make = [&](int64_t num_units) {
    RulerSample sample = task.make({num_units, num_tokens, essay}, RandomStream(seed));
    return RulerPrompt{encode_prompt(tokenizer, frame, sample.message, sample.answer_begin),
                       std::move(sample.references)};
  };
  const int64_t most_tokens = num_tokens - task.max_answer_tokens;
  const auto fits = [&](const RulerPrompt& prompt) {
    return std::ssize(prompt.ids) <= most_tokens;
  };
  RulerPrompt best = make(1);
  if (!fits(best)) {
    return fail(ErrorCode::kInvalidArgument,
                "%.*s: expected room for %zu tokens of prompt and %lld of answer, found %lld",
                static_cast<int>(task.name.size()), task.name.data(), best.ids.size(),
                static_cast<long long>(task.max_answer_tokens), static_cast<long long>(num_tokens));
  }
  // The largest number of units that fits lies in [fitting, too_many).
  int64_t fitting = 1;
  int64_t too_many = num_tokens + 1;  // a unit is no shorter than a token
  const auto guess = [&] {
    const int64_t doubled = 2 * fitting;
    return doubled < too_many && too_many > num_tokens ? doubled : (fitting + too_many) / 2;
  };
  while (fitting + 1 < too_many) {
    const int64_t num_units = guess();
    RulerPrompt prompt = make(num_units);
    if (fits(prompt)) {
      fitting = num_units;
      best = std::move(prompt);
    } else {
      too_many = num_units;
    }
  }
  return best;
}

}  // namespace winnow

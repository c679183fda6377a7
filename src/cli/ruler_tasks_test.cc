#include "cli/ruler_tasks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "cli/filler_text.h"
#include "support/tiny_tokenizer.h"

namespace winnow {
namespace {

const RulerTask& task_of(std::string_view name) {
  const auto found = std::find_if(ruler_tasks().begin(), ruler_tasks().end(),
                                  [&](const RulerTask& task) { return task.name == name; });
  return *found;
}

RulerSample sample_of(const RulerTask& task, int64_t num_units, uint64_t seed = 1) {
  return task.make({num_units, 4096, builtin_prose()}, RandomStream(seed));
}

size_t occurrences(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::map<std::string, int> word_counts(const std::string& text) {
  std::map<std::string, int> counts;
  std::istringstream words(text);
  for (std::string word; words >> word;) ++counts[word];
  return counts;
}

TEST(RulerTasks, APromptFillsItsLengthWithinOnePercentOrALineOfHaystack) {
  const test::TinyTokenizer tiny = test::tiny_tokenizer("llama-untied");
  const auto frame = prompt_frame(tiny.file->metadata(), *tiny.tokenizer);
  ASSERT_TRUE(frame.ok());
  constexpr int64_t kLength = 16000;
  for (const RulerTask& task : ruler_tasks()) {
    SCOPED_TRACE(task.name);
    const auto prompt =
        make_ruler_prompt(task, *tiny.tokenizer, *frame, builtin_prose(), kLength, 5);
    ASSERT_TRUE(prompt.ok()) << prompt.error().message;
    const int64_t size = std::ssize(prompt->ids) + task.max_answer_tokens;
    EXPECT_LE(size, kLength);
    EXPECT_GE(size, kLength - kLength / 100);
    const auto again =
        make_ruler_prompt(task, *tiny.tokenizer, *frame, builtin_prose(), kLength, 5);
    EXPECT_EQ(again->ids, prompt->ids);
    const auto other =
        make_ruler_prompt(task, *tiny.tokenizer, *frame, builtin_prose(), kLength, 6);
    EXPECT_NE(other->ids, prompt->ids);
    const auto none = make_ruler_prompt(task, *tiny.tokenizer, *frame, builtin_prose(), 200, 5);
    EXPECT_FALSE(none.ok());
  }
}

TEST(RulerTasks, ReferencesDoNotDependOnTheSize) {
  for (const RulerTask& task : ruler_tasks()) {
    EXPECT_EQ(sample_of(task, 50).references, sample_of(task, 700).references) << task.name;
  }
}

TEST(RulerTasks, NeedleTasksPlantEachReferenceOnce) {
  const std::map<std::string_view, size_t> num_references = {
      {"niah_single_1", 1},   {"niah_single_2", 1},   {"niah_single_3", 1},
      {"niah_multikey_1", 1}, {"niah_multikey_2", 1}, {"niah_multikey_3", 1},
      {"niah_multivalue", 4}, {"niah_multiquery", 4}};
  for (const auto& [name, count] : num_references) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const RulerSample sample = sample_of(task_of(name), 300, seed);
      EXPECT_EQ(sample.references.size(), count) << name;
      for (const std::string& reference : sample.references) {
        EXPECT_EQ(occurrences(sample.message, reference), 1U) << name << " " << reference;
      }
    }
  }
  const RulerSample uuid = sample_of(task_of("niah_single_3"), 300);
  EXPECT_EQ(uuid.references[0].size(), 36U);
  EXPECT_EQ(uuid.references[0][14], '4');
}

TEST(RulerTasks, AChainOfVariablesStandsInOrder) {
  const RulerSample sample = sample_of(task_of("vt"), 100);
  ASSERT_EQ(sample.references.size(), 5U);
  size_t last = 0;
  for (size_t i = 0; i < 5; ++i) {
    const size_t found = sample.message.find("VAR " + sample.references[i] + " = ");
    ASSERT_NE(found, std::string::npos);
    EXPECT_GT(found, last);
    last = found;
  }
}

TEST(RulerTasks, CommonWordsAreTheMostCommon) {
  const RulerSample sample = sample_of(task_of("cwe"), 500);
  const size_t list = sample.message.find("\n1. ", sample.message.rfind("Below is"));
  const size_t list_end = sample.message.find("\nQuestion", list);
  const auto counts = word_counts(sample.message.substr(list, list_end - list));
  for (const std::string& word : sample.references) EXPECT_EQ(counts.at(word), 30) << word;
  EXPECT_EQ(std::count_if(counts.begin(), counts.end(),
                          [](const auto& word) { return word.second == 3; }),
            500);
}

TEST(RulerTasks, FrequentWordsFollowTheDots) {
  const RulerSample sample = sample_of(task_of("fwe"), 2000);
  const std::map<std::string, int> counts = word_counts(sample.message);
  EXPECT_GT(counts.at("..."), counts.at(sample.references[0]));
  EXPECT_GT(counts.at(sample.references[0]), counts.at(sample.references[1]));
  EXPECT_GT(counts.at(sample.references[1]), counts.at(sample.references[2]));
  EXPECT_EQ(counts.at(sample.references[2]), 75);  // 2000 / 16 / zeta(2)
}

}  // namespace
}  // namespace winnow

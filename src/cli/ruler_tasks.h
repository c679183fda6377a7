// The synthetic tasks of RULER (arXiv 2404.06654) that need no data from outside: eight kinds of
// needles in a haystack, variable tracking, common and frequent words. The wording follows the
// paper; words and haystacks are our own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "cli/prompt_frame.h"
#include "sampling/random_stream.h"
#include "tokenizer/tokenizer.h"

namespace winnow {

struct RulerSample {
  std::string message;
  std::string answer_begin;             // what the model goes on from
  std::vector<std::string> references;  // strings that the answer should contain
};

// How large a sample is to be.
struct RulerSize {
  int64_t num_units = 0;   // of haystack: lines, words or list entries, as the task counts
  int64_t num_tokens = 0;  // of the whole prompt and answer; some tasks' parameters follow it
  std::string_view essay;  // for the tasks whose haystack is prose; not empty
};

struct RulerTask {
  std::string_view name;
  int64_t max_answer_tokens = 0;
  // Equal streams and sizes give equal samples; the references do not depend on the size.
  RulerSample (*make)(const RulerSize& size, RandomStream random);
};

std::span<const RulerTask> ruler_tasks();

struct RulerPrompt {
  std::vector<TokenId> ids;
  std::vector<std::string> references;
};

// The task's largest sample that fits, with room for the answer, in num_tokens. kInvalidArgument if
// not even the smallest does.
Result<RulerPrompt> make_ruler_prompt(const RulerTask& task, const Tokenizer& tokenizer,
                                      const PromptFrame& frame, std::string_view essay,
                                      int64_t num_tokens, uint64_t seed);

}  // namespace winnow

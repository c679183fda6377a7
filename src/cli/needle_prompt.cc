#include "cli/needle_prompt.h"

#include <algorithm>

#include "cli/filler_text.h"
#include "cli/random_choice.h"
#include "cli/word_tables.h"

namespace winnow {
namespace {

constexpr std::string_view kTask =
    "Remember the special magic numbers hidden in the following text.\n\n";
constexpr int kNumDigits = 7;

struct NamedNumber {
  std::string name;
  std::string digits;
};

std::string statement(const NamedNumber& number) {
  return "special magic number for " + number.name + " is ";
}

std::vector<NamedNumber> named_numbers(size_t count, RandomStream& random) {
  std::vector<NamedNumber> numbers;
  for (const size_t name : distinct_below(random, count, adjectives().size() * nouns().size())) {
    std::string digits;
    for (int i = 0; i < kNumDigits; ++i) digits += static_cast<char>('0' + below(random, 10));
    const std::string_view adjective = adjectives()[name % adjectives().size()];
    const std::string_view noun = nouns()[name / adjectives().size()];
    numbers.push_back({std::string(adjective) + " " + std::string(noun), digits});
  }
  return numbers;
}

// A sentence to be planted, and where.
struct Planted {
  size_t number_idx = 0;
  double depth = 0;
  std::string_view opening = "The ";
};

constexpr double kFirstHalf = 0.5, kRecallBegin = 0.55, kRecallEnd = 0.9;

// Sentences in the order of the text. Numbers [0, n) are asked after, [n, 2n) recalled inside.
std::vector<Planted> plan(size_t num_needles, RandomStream& random) {
  std::vector<Planted> planted;
  const std::vector<size_t> recall_order = distinct_below(random, num_needles, num_needles);
  for (size_t i = 0; i < num_needles; ++i) {
    const double part = (static_cast<double>(i) + 0.5) / static_cast<double>(num_needles);
    planted.push_back({i, part});
    planted.push_back({num_needles + i, part * kFirstHalf});
    planted.push_back({num_needles + recall_order[i],
                       kRecallBegin + part * (kRecallEnd - kRecallBegin), "To repeat: the "});
  }
  std::stable_sort(planted.begin(), planted.end(),
                   [](const Planted& a, const Planted& b) { return a.depth < b.depth; });
  return planted;
}

// The filler with the sentences planted at their depths, a little longer than asked for.
std::string planted_text(const Tokenizer& tokenizer, std::string_view filler,
                         const NeedlePromptShape& shape, std::span<const Planted> plan,
                         std::span<const NamedNumber> numbers, int64_t num_tokens_before) {
  const auto count = [&](std::string_view text) { return std::ssize(tokenizer.encode(text)); };
  const auto wanted = static_cast<double>(shape.num_tokens);
  FillerText source(filler, shape.seed);
  std::string text(kTask);
  int64_t num_tokens = num_tokens_before + count(text);
  size_t num_planted = 0;
  // Tokens that form across the pieces' borders make the whole shorter than the sum.
  while (static_cast<double>(num_tokens) < wanted * 1.1 + 64) {
    const std::string_view piece = source.next();
    const int64_t piece_tokens = count(piece);
    const double middle = static_cast<double>(num_tokens) + static_cast<double>(piece_tokens) / 2;
    while (num_planted < plan.size() && plan[num_planted].depth * wanted <= middle) {
      const Planted& planted = plan[num_planted++];
      const NamedNumber& number = numbers[planted.number_idx];
      const std::string sentence =
          "\n" + std::string(planted.opening) + statement(number) + number.digits + ".\n";
      text += sentence;
      num_tokens += count(sentence);
    }
    text += piece;
    num_tokens += piece_tokens;
  }
  return text;
}

// Where in the ids of a text its bytes begin and end.
class TokenPlaces {
 public:
  TokenPlaces(const Tokenizer& tokenizer, std::span<const TokenId> ids) {
    for (const TokenId id : ids) {
      text_ += tokenizer.piece(id);
      ends_.push_back(text_.size());
    }
  }

  struct Span {
    int64_t begin = 0;
    int64_t end = 0;
  };
  // The tokens that spell `digits` after the first `before` at or after byte `from`.
  std::optional<Span> find(const std::string& before, const std::string& digits,
                           size_t& from) const {
    const size_t found = text_.find(before + digits, from);
    if (found == std::string::npos) return std::nullopt;
    const size_t begin = found + before.size();
    from = begin + digits.size();
    return Span{token_at(begin), token_at(from - 1) + 1};
  }

 private:
  int64_t token_at(size_t byte) const {
    return std::upper_bound(ends_.begin(), ends_.end(), byte) - ends_.begin();
  }
  std::string text_;
  std::vector<size_t> ends_;
};

std::vector<TokenId> slice(std::span<const TokenId> ids, TokenPlaces::Span span) {
  return {ids.begin() + span.begin, ids.begin() + span.end};
}

Error cannot_spell(const NamedNumber& number) {
  return fail(ErrorCode::kUnsupported, "tokenizer: expected it to spell '%s%s', found other text",
              statement(number).c_str(), number.digits.c_str());
}

Result<AskedNeedle> ask(const Tokenizer& tokenizer, const PromptFrame& frame,
                        const NamedNumber& number) {
  AskedNeedle asked;
  const std::string question =
      "\n\nWhat is the special magic number for " + number.name + " mentioned in the text?";
  const std::vector<TokenId> ids =
      encode_prompt_end(tokenizer, frame, question, "The " + statement(number) + number.digits);
  size_t from = 0;
  const auto digits = TokenPlaces(tokenizer, ids).find(statement(number), number.digits, from);
  if (!digits) return cannot_spell(number);
  asked.question = slice(ids, {0, digits->begin});
  asked.answer = slice(ids, *digits);
  return asked;
}

Error no_room(const NeedlePromptShape& shape) {
  return fail(ErrorCode::kInvalidArgument,
              "needle prompt: expected room for %lld needles of each kind, found %lld tokens",
              static_cast<long long>(shape.num_needles), static_cast<long long>(shape.num_tokens));
}

}  // namespace

Result<NeedlePrompt> make_needle_prompt(const Tokenizer& tokenizer, const PromptFrame& frame,
                                        std::string_view filler, const NeedlePromptShape& shape) {
  RandomStream random(shape.seed);
  const auto num_needles = static_cast<size_t>(shape.num_needles);
  const std::vector<NamedNumber> numbers = named_numbers(2 * num_needles, random);
  const std::vector<Planted> sentences = plan(num_needles, random);
  const int64_t num_before = std::ssize(encode_open_prompt(tokenizer, frame, ""));
  const std::string text = planted_text(tokenizer, filler, shape, sentences, numbers, num_before);

  NeedlePrompt prompt;
  prompt.ids = encode_open_prompt(tokenizer, frame, text);
  if (std::ssize(prompt.ids) < shape.num_tokens) return no_room(shape);
  prompt.ids.resize(static_cast<size_t>(shape.num_tokens));
  const TokenPlaces places(tokenizer, prompt.ids);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const NamedNumber& number = numbers[i];
    TRY(AskedNeedle asked, ask(tokenizer, frame, number));
    size_t from = 0;
    const auto first = places.find(statement(number), number.digits, from);
    if (!first) return no_room(shape);
    asked.needle = first->begin;
    if (i < num_needles) {
      prompt.asked_after.push_back(std::move(asked));
      continue;
    }
    const auto second = places.find(statement(number), number.digits, from);
    if (!second) return no_room(shape);
    prompt.recalled_inside.push_back({first->begin, second->begin, slice(prompt.ids, *second)});
  }
  return prompt;
}

int64_t num_right(std::span<const TokenId> answer, std::span<const TokenId> found) {
  int64_t right = 0;
  for (size_t i = 0; i < std::min(answer.size(), found.size()); ++i) right += answer[i] == found[i];
  return right;
}

}  // namespace winnow

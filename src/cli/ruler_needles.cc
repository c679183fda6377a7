#include "cli/ruler_needles.h"

#include <algorithm>

#include "cli/filler_text.h"
#include "cli/random_choice.h"
#include "cli/word_tables.h"

namespace winnow {
namespace {

// Words, numbers and UUIDs, each different from all before it as far as there are enough.
class WordSource {
 public:
  explicit WordSource(RandomStream& random)
      : random_(random),
        names_(distinct_below(random, adjectives().size() * nouns().size(),
                              adjectives().size() * nouns().size())) {}

  std::string next(NeedleWord kind) {
    switch (kind) {
      case NeedleWord::kName:
        return next_name();
      case NeedleWord::kNumber:
        return std::to_string(1'000'000 + below(random_, 9'000'000));
      case NeedleWord::kUuid:
        break;
    }
    return next_uuid();
  }

 private:
  std::string next_name() {
    const size_t idx = names_[num_names_ % names_.size()];
    std::string name = std::string(adjectives()[idx % adjectives().size()]) + "-" +
                       std::string(nouns()[idx / adjectives().size()]);
    for (size_t round = num_names_ / names_.size(); round > 0; round /= nouns().size()) {
      name += "-" + std::string(nouns()[round % nouns().size()]);
    }
    ++num_names_;
    return name;
  }

  // Version 4: random but for six bits.
  std::string next_uuid() {
    constexpr std::string_view kHex = "0123456789abcdef";
    std::string uuid;
    for (int digit = 0; digit < 32; ++digit) {
      if (digit == 8 || digit == 12 || digit == 16 || digit == 20) uuid += '-';
      size_t value = below(random_, 16);
      if (digit == 12) value = 4;
      if (digit == 16) value = 8 + value % 4;
      uuid += kHex[value];
    }
    return uuid;
  }

  RandomStream& random_;
  std::vector<size_t> names_;
  size_t num_names_ = 0;
};

std::string_view kind_name(NeedleWord kind) {
  return kind == NeedleWord::kUuid ? "uuid" : "number";
}

std::string needle(NeedleWord kind, const std::string& key, const std::string& value) {
  return "One of the special magic " + std::string(kind_name(kind)) + "s for " + key +
         " is: " + value + ".";
}

// The first `num_words` words of the essay, as pieces.
std::vector<std::string> essay_pieces(std::string_view essay, int64_t num_words,
                                      RandomStream& random) {
  FillerText source(essay, random.next_u64());
  std::vector<std::string> pieces;
  while (num_words > 0) {
    const std::string_view piece = source.next();
    size_t end = 0;
    while (end < piece.size() && num_words > 0) {
      end = std::min(piece.find_first_of(" \n", end), piece.size());
      end = std::min(piece.find_first_not_of(" \n", end), piece.size());
      --num_words;
    }
    pieces.emplace_back(piece.substr(0, end));
  }
  return pieces;
}

// Needles at places drawn from forty depths, as RULER has it.
std::string planted_essay(const std::vector<std::string>& pieces,
                          const std::vector<std::string>& needles, RandomStream& random) {
  constexpr size_t kRulerDepths = 40;
  std::vector<size_t> depths = distinct_below(random, needles.size(), kRulerDepths);
  std::sort(depths.begin(), depths.end());
  std::string text;
  size_t num_planted = 0;
  for (size_t i = 0; i <= pieces.size(); ++i) {
    while (num_planted < needles.size() &&
           depths[num_planted] * pieces.size() <= i * (kRulerDepths - 1)) {
      text += needles[num_planted++] + " ";
    }
    if (i < pieces.size()) text += pieces[i];
  }
  return text;
}

std::string haystack_with(const NeedleTask& task, const RulerSize& size,
                          const std::vector<std::string>& needles, WordSource& words,
                          RandomStream& random) {
  if (task.haystack == NeedleHaystack::kEssay) {
    return planted_essay(essay_pieces(size.essay, size.num_units, random), needles, random);
  }
  std::vector<std::string> lines;
  for (int64_t i = 0; i < size.num_units; ++i) {
    lines.push_back(task.haystack == NeedleHaystack::kNoise
                        ? std::string(noise_line())
                        : needle(task.value, words.next(task.key), words.next(task.value)));
  }
  return with_planted_lines(lines, needles, random);
}

std::string listed(const std::vector<std::string>& words) {
  std::string list;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) list += i + 1 == words.size() ? ", and " : ", ";
    list += words[i];
  }
  return list;
}

}  // namespace

std::string_view noise_line() {
  return "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back "
         "again.";
}

std::string with_planted_lines(const std::vector<std::string>& lines,
                               const std::vector<std::string>& planted, RandomStream& random) {
  const size_t num_lines = lines.size() + planted.size();
  std::vector<size_t> places = distinct_below(random, planted.size(), num_lines);
  std::sort(places.begin(), places.end());
  std::string text;
  size_t num_planted = 0;
  for (size_t i = 0; i < num_lines; ++i) {
    const bool plants = num_planted < places.size() && places[num_planted] == i;
    if (i > 0) text += "\n";
    text += plants ? planted[num_planted] : lines[i - num_planted];
    num_planted += plants;
  }
  return text;
}

RulerSample make_needle_sample(const NeedleTask& task, const RulerSize& size, RandomStream random) {
  WordSource words(random);
  std::vector<std::string> needles;
  std::vector<std::string> queried;
  RulerSample sample;
  for (size_t key_idx = 0; key_idx < task.num_keys; ++key_idx) {
    const std::string key = words.next(task.key);
    const bool asked = key_idx < task.num_queried;
    if (asked) queried.push_back(key);
    for (size_t i = 0; i < task.num_values; ++i) {
      const std::string value = words.next(task.value);
      needles.push_back(needle(task.value, key, value));
      if (asked) sample.references.push_back(value);
    }
  }
  shuffle(needles, random);
  const std::string context = haystack_with(task, size, needles, words, random);

  const bool one = sample.references.size() == 1;
  const std::string kind = std::string(kind_name(task.value)) + (one ? "" : "s");
  const std::string subject =
      "special magic " + kind + " for " + listed(queried) + " mentioned in the provided text";
  sample.message = std::string(one ? "A" : "Some") + " special magic " + kind +
                   (one ? " is" : " are") +
                   " hidden within the following text. Make sure to memorize it. I will quiz you "
                   "about the " +
                   kind + " afterwards.\n" + context + "\nWhat " +
                   (one ? "is the " : "are all the ") + subject + "?";
  sample.answer_begin = "The " + subject + (one ? " is" : " are");
  return sample;
}

}  // namespace winnow

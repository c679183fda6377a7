#include "cli/bench_prompts.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "cli/json_output.h"
#include "cli/random_choice.h"

namespace winnow {
namespace {

constexpr size_t kRunUnits = 32;  // that stay together: about a sentence

std::vector<std::string> words_of(std::string_view text) {
  constexpr const char* kBlanks = " \t\r\n";
  std::vector<std::string> words;
  for (size_t begin = text.find_first_not_of(kBlanks); begin != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kBlanks, end);
  }
  return words;
}

}  // namespace

BenchPrompts::BenchPrompts(std::vector<TokenId> ids, int64_t shared_tokens, uint64_t seed)
    : units_(std::move(ids)), random_(seed) {
  append_mixed(shared_, static_cast<size_t>(shared_tokens));
}

BenchPrompts::BenchPrompts(std::string_view text, int64_t shared_tokens, uint64_t seed)
    : units_(words_of(text)), random_(seed) {
  append_mixed(shared_, static_cast<size_t>(shared_tokens * 3 / 4));
}

size_t BenchPrompts::num_units() const {
  return std::visit([](const auto& units) { return units.size(); }, units_);
}

void BenchPrompts::append_mixed(Indices& indices, size_t count) {
  const size_t total = num_units();
  for (size_t left = count; left > 0;) {
    const size_t begin = below(random_, total);
    const size_t run = std::min(left, kRunUnits);
    for (size_t i = 0; i < run; ++i) indices.push_back((begin + i) % total);
    left -= run;
  }
}

boost::json::value BenchPrompts::next(int64_t num_tokens) {
  const auto count =
      static_cast<size_t>(exact() ? num_tokens : std::max<int64_t>(1, num_tokens * 3 / 4));
  Indices indices(shared_.begin(),
                  shared_.begin() + static_cast<std::ptrdiff_t>(std::min(shared_.size(), count)));
  append_mixed(indices, count - indices.size());
  return rendered(indices);
}

boost::json::value BenchPrompts::rendered(const Indices& indices) const {
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&units_)) {
    boost::json::array list;
    list.reserve(indices.size());
    for (const size_t idx : indices) list.emplace_back((*ids)[idx]);
    return list;
  }
  const auto& words = std::get<std::vector<std::string>>(units_);
  std::string text;
  for (const size_t idx : indices) text += (text.empty() ? "" : " ") + words[idx];
  return json_text(text);
}

std::string completion_body(std::string_view model, boost::json::value prompt, int64_t max_tokens) {
  const boost::json::object body = {{"model", json_text(model)},
                                    {"prompt", std::move(prompt)},
                                    {"max_tokens", max_tokens},
                                    {"temperature", 0},
                                    {"ignore_eos", true},
                                    {"stream", true},
                                    {"stream_options", {{"include_usage", true}}}};
  return boost::json::serialize(body);
}

}  // namespace winnow

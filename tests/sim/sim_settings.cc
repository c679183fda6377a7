#include "sim/sim_settings.h"

#include <algorithm>

#include "kv/kv_store.h"

namespace winnow::sim {
namespace {

constexpr size_t kMaxTexts = 12;

}  // namespace

SimSettings SimSettings::of(Dice& dice) {
  SimSettings s;
  s.num_pages = dice.one_of({3, 5, 7, 10, 10, 16, 16, 24, 40});
  s.limits.max_running = static_cast<int32_t>(dice.one_of({1, 2, 4, 8, 8, 16}));
  s.limits.max_waiting = static_cast<int32_t>(dice.between(1, 24));
  s.limits.max_rerun_tokens = static_cast<int32_t>(dice.one_of({1, 5, 40, 200}));
  s.hash_bits = static_cast<int>(dice.one_of({1, 4, 8, 64}));
  if (!dice.one_in(3)) {
    s.budget = static_cast<int32_t>(dice.one_of({1, 97, 128, 130, 300, 512, 4096}));
  }
  s.num_requests = dice.between(8, 30);
  s.arrival_steps = dice.one_of({1, 1, 1, 3, 30});
  s.cancel_steps = dice.one_of({0, 7, 30, 100, 400});
  s.longest_prompt = std::min<int64_t>(s.num_pages - 1, dice.between(1, 8));
  s.longest_answer = dice.one_of({2, 40, 150, 500, 1000});
  for (int64_t i = dice.between(1, 3); i > 0; --i) {
    std::optional<SparseRule> rule;
    if (dice.one_in(2)) {
      rule = SparseRule{.min_tokens = dice.one_of({0, 300, 600}),
                        .dense_tokens = static_cast<int32_t>(dice.one_of({1, 2}) * kPageTokens),
                        .tail_tokens = static_cast<int32_t>(dice.one_of({1, 128, 200}))};
    }
    s.scopes.push_back(rule);
  }
  return s;
}

RequestSource::RequestSource(const SimSettings& settings, Dice& dice)
    : settings_(settings), dice_(dice) {
  for (int64_t i = dice.one_of({1, 1, 2, 4}); i > 0; --i) {
    // Some texts repeat one page, or one token.
    std::vector<TokenId> text;
    const int64_t period = dice.one_of({1, kPageTokens, 1 << 20, 1 << 20});
    append_random(text, std::min(period, settings.longest_prompt * kPageTokens));
    while (std::ssize(text) < settings.longest_prompt * kPageTokens) {
      text.push_back(text[text.size() - static_cast<size_t>(period)]);
    }
    texts_.push_back(std::move(text));
  }
}

void RequestSource::append_random(std::vector<TokenId>& tokens, int64_t num_tokens) {
  for (int64_t i = 0; i < num_tokens; ++i) {
    tokens.push_back(static_cast<TokenId>(dice_.between(0, 1'000'000)));
  }
}

// Most lengths lie about a page edge.
int64_t RequestSource::prompt_tokens() {
  const int64_t longest = settings_.longest_prompt * kPageTokens;
  if (dice_.one_in(4)) return dice_.between(1, longest);
  const int64_t pages = dice_.between(0, settings_.longest_prompt);
  return std::clamp<int64_t>(pages * kPageTokens + dice_.between(-2, 2), 1, longest);
}

std::vector<TokenId> RequestSource::prompt() {
  const int64_t num_tokens = prompt_tokens();
  std::vector<TokenId> tokens;
  const std::vector<TokenId>& text =
      texts_[static_cast<size_t>(dice_.between(0, std::ssize(texts_) - 1))];
  int64_t shared = std::min(num_tokens, std::ssize(text));
  if (dice_.one_in(3)) shared = dice_.between(0, shared);
  tokens.assign(text.begin(), text.begin() + shared);
  append_random(tokens, num_tokens - shared);
  return tokens;
}

SimRequest RequestSource::next(RequestId id) {
  SimRequest made;
  ScheduledRequest& request = made.request;
  request.id = id;
  request.prompt = prompt();
  made.scope = static_cast<int16_t>(dice_.between(0, std::ssize(settings_.scopes) - 1));
  const std::optional<SparseRule>& rule = settings_.scopes[static_cast<size_t>(made.scope)];
  request.mode = PromptMode::of(rule, std::ssize(request.prompt));
  request.cache = {.scope = "scope " + std::to_string(made.scope),
                   .read = !dice_.one_in(8),
                   .exact = !dice_.one_in(3)};
  const int64_t room = settings_.num_pages * kPageTokens - std::ssize(request.prompt);
  request.max_new_tokens = std::min(room, dice_.between(1, settings_.longest_answer));
  made.answer_tokens =
      dice_.one_in(3) ? dice_.between(1, request.max_new_tokens) : request.max_new_tokens;
  if (dice_.one_in(5)) request.max_new_tokens = room;
  return made;
}

void RequestSource::add_text(const std::vector<TokenId>& tokens) {
  if (texts_.size() < kMaxTexts) {
    texts_.push_back(tokens);
  } else {
    texts_[static_cast<size_t>(dice_.between(0, kMaxTexts - 1))] = tokens;
  }
}

}  // namespace winnow::sim

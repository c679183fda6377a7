#include "server/completion_answer.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <numeric>
#include <optional>

#include "server/error_map.h"
#include "server/openai_types.h"
#include "server/stream_writer.h"
#include "server/token_scores.h"

namespace winnow {
namespace {

namespace json = boost::json;

// The scores of one choice: of its prompt, if that is echoed, and of its tokens.
class ChoiceScores {
 public:
  ChoiceScores(const Tokenizer& tokenizer, const CompletionPrompt& prompt, int32_t num_top)
      : scores_(tokenizer), bos_added_(prompt.bos_added), num_top_(num_top) {}

  void add_prompt(const std::vector<ScoredToken>& tokens) {
    for (const ScoredToken& token : tokens) {
      if (first_) {
        scores_.add_first(token.token, !bos_added_);
      } else {
        scores_.add(token, num_top_);
      }
      first_ = false;
    }
  }
  void add(const ScoredToken& token) { scores_.add(token, num_top_); }
  json::object take() { return scores_.take(); }

 private:
  TokenScores scores_;
  bool bos_added_;
  int32_t num_top_;
  bool first_ = true;
};

class CompletionStreamWriter final : public StreamWriter {
 public:
  CompletionStreamWriter(AnswerHead head, CompletionRequest request, const Tokenizer& tokenizer)
      : StreamWriter(std::move(head), "text_completion", request.settings, tokenizer),
        request_(std::move(request)) {
    for (const CompletionPrompt& prompt : request_.prompts) {
      usage_.add_prompt(static_cast<int64_t>(prompt.ids.size()));
      for (int32_t i = 0; i < settings_.n; ++i) {
        choices_.push_back({ChoiceScores(tokenizer, prompt, settings_.top_logprobs)});
      }
    }
  }

  void on_prompt_scores(Exchange& /*exchange*/, int32_t choice,
                        std::vector<ScoredToken> scores) override {
    choices_[static_cast<size_t>(choice)].scores.add_prompt(scores);
  }

  void on_token(Exchange& exchange, int32_t choice, AnswerToken token) override {
    Choice& state = choices_[static_cast<size_t>(choice)];
    ++state.num_tokens;
    usage_.add_token();
    open(exchange, choice);
    if (settings_.logprobs) state.scores.add(token.token);
    const bool first = state.num_tokens == 1;
    if (token.text.empty() && !first && !settings_.logprobs && !settings_.return_token_ids) return;
    json::object entry = choice_json(choice, token.text);
    if (settings_.logprobs) entry["logprobs"] = state.scores.take();
    if (settings_.return_token_ids) entry["token_ids"] = ids_json({token.token.token});
    json::object news = chunk(one_element(std::move(entry)));
    if (settings_.timings_per_token) {
      const auto prompt_tokens = static_cast<int64_t>(prompt_of(choice).ids.size());
      news["timings"] = timings_json(token, prompt_tokens, state.num_tokens);
    }
    send(exchange, std::move(news));
  }

  void on_end(Exchange& exchange, int32_t choice, AnswerEnd end) override {
    open(exchange, choice);
    usage_.add_end(choice, end.end);
    send_end(exchange, choice_json(choice, end.text), end, finish_reason(end.end));
  }

 private:
  struct Choice {
    ChoiceScores scores;
    int64_t num_tokens = 0;
    bool opened = false;
  };

  static json::object choice_json(int32_t choice, std::string_view text) {
    json::object entry;
    entry["index"] = choice;
    entry["text"] = text;
    entry["logprobs"] = nullptr;
    entry["finish_reason"] = nullptr;
    return entry;
  }

  const CompletionPrompt& prompt_of(int32_t choice) const {
    return request_.prompts[static_cast<size_t>(choice / settings_.n)];
  }

  // What comes before the first token: the prompt, where it is wanted.
  void open(Exchange& exchange, int32_t choice) {
    Choice& state = choices_[static_cast<size_t>(choice)];
    if (std::exchange(state.opened, true)) return;
    if (!request_.echo && !settings_.return_token_ids) return;
    const CompletionPrompt& prompt = prompt_of(choice);
    json::object entry = choice_json(choice, request_.echo ? prompt.text : std::string());
    if (request_.echo && settings_.logprobs) entry["logprobs"] = state.scores.take();
    if (settings_.return_token_ids) entry["prompt_token_ids"] = ids_json(prompt.ids);
    send(exchange, chunk(one_element(std::move(entry))));
  }

  const CompletionRequest request_;
  std::vector<Choice> choices_;
};

class CompletionBodyWriter final : public AnswerWriter {
 public:
  CompletionBodyWriter(AnswerHead head, CompletionRequest request, const Tokenizer& tokenizer)
      : head_(std::move(head)),
        request_(std::move(request)),
        settings_(request_.settings),
        tokenizer_(tokenizer) {
    for (const CompletionPrompt& prompt : request_.prompts) {
      prompt_logprobs_.emplace_back(tokenizer, settings_.prompt_logprobs.value_or(0));
      for (int32_t i = 0; i < settings_.best_of; ++i) {
        choices_.push_back({ChoiceScores(tokenizer, prompt, settings_.top_logprobs)});
        if (request_.echo) choices_.back().text = prompt.text;
      }
    }
  }

  void on_prompt_scores(Exchange& /*exchange*/, int32_t choice,
                        std::vector<ScoredToken> scores) override {
    if (request_.echo && settings_.logprobs) {
      choices_[static_cast<size_t>(choice)].scores.add_prompt(scores);
    }
    if (settings_.prompt_logprobs && choice % settings_.best_of == 0) {
      prompt_logprobs_[static_cast<size_t>(choice / settings_.best_of)].add(scores);
    }
  }

  void on_token(Exchange& /*exchange*/, int32_t choice, AnswerToken token) override {
    Choice& state = choices_[static_cast<size_t>(choice)];
    state.text += token.text;
    state.sum_logprobs += static_cast<double>(token.token.logprob);
    ++state.num_tokens;
    if (settings_.logprobs) state.scores.add(token.token);
    if (settings_.return_token_ids) state.ids.push_back(token.token.token);
  }

  void on_end(Exchange& /*exchange*/, int32_t choice, AnswerEnd end) override {
    Choice& state = choices_[static_cast<size_t>(choice)];
    state.text += end.text;
    state.end = std::move(end);
  }

  void finish(Exchange& exchange) override {
    json::object body;
    body["id"] = head_.id;
    body["object"] = "text_completion";
    body["created"] = head_.created;
    body["model"] = head_.model;
    json::array choices;
    UsageTotal usage(settings_.best_of);
    for (size_t prompt = 0; prompt < request_.prompts.size(); ++prompt) {
      const json::array prompt_logprobs = prompt_logprobs_[prompt].take();
      for (const size_t idx : best_choices(prompt)) {
        json::object entry = choice_json(choices.size(), prompt, choices_[idx]);
        if (settings_.prompt_logprobs) entry["prompt_logprobs"] = prompt_logprobs;
        choices.push_back(std::move(entry));
      }
    }
    for (size_t i = 0; i < choices_.size(); ++i) {
      usage.add_end(static_cast<int32_t>(i), choices_[i].end.end);
    }
    body["choices"] = std::move(choices);
    body["usage"] = usage_json(usage.ended());
    body["timings"] = timings_json(choices_.front().end.end);
    exchange.reply({.body = json::serialize(body)});
  }

  void fail(Exchange& exchange, const Error& error) override { exchange.reply(error_reply(error)); }

 private:
  struct Choice {
    ChoiceScores scores;
    std::string text = {};
    std::vector<TokenId> ids = {};
    double sum_logprobs = 0;
    int64_t num_tokens = 0;
    AnswerEnd end = {};

    double mean_logprob() const {
      return num_tokens > 0 ? sum_logprobs / static_cast<double>(num_tokens) : 0;
    }
  };

  // The n choices of a prompt with the highest mean logprob, in the order they were made.
  std::vector<size_t> best_choices(size_t prompt) const {
    const auto best_of = static_cast<size_t>(settings_.best_of);
    std::vector<size_t> order(best_of);
    std::iota(order.begin(), order.end(), prompt * best_of);
    std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) {
      return choices_[a].mean_logprob() > choices_[b].mean_logprob();
    });
    if (settings_.n == settings_.best_of) std::sort(order.begin(), order.end());
    order.resize(static_cast<size_t>(settings_.n));
    return order;
  }

  json::object choice_json(size_t idx, size_t prompt, Choice& choice) const {
    json::object entry;
    entry["index"] = idx;
    entry["text"] = choice.text;
    entry["logprobs"] = nullptr;
    if (settings_.logprobs) entry["logprobs"] = choice.scores.take();
    entry["finish_reason"] = finish_reason(choice.end.end);
    entry["stop_reason"] = stop_reason(choice.end, tokenizer_);
    if (settings_.return_token_ids) {
      entry["prompt_token_ids"] = ids_json(request_.prompts[prompt].ids);
      entry["token_ids"] = ids_json(choice.ids);
    }
    return entry;
  }

  const AnswerHead head_;
  const CompletionRequest request_;
  const GenerationSettings& settings_;
  const Tokenizer& tokenizer_;
  std::vector<Choice> choices_;
  std::vector<PromptLogprobs> prompt_logprobs_;  // [prompt]
};

}  // namespace

std::unique_ptr<AnswerWriter> completion_answer_writer(AnswerHead head, CompletionRequest request,
                                                       const Tokenizer& tokenizer) {
  if (request.settings.stream) {
    return std::make_unique<CompletionStreamWriter>(std::move(head), std::move(request), tokenizer);
  }
  return std::make_unique<CompletionBodyWriter>(std::move(head), std::move(request), tokenizer);
}

}  // namespace winnow

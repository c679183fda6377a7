#include "cli/answer_pair.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <numeric>

#include "cli/formatted.h"
#include "cli/interrupt.h"
#include "cli/statistics.h"
#include "engine/divergence.h"
#include "engine/sequence.h"

namespace winnow {
namespace {

// Tokens whose logits are kept: those of a large vocabulary take megabytes.
constexpr size_t kComparedTokens = 16;

using LogitHistory = std::vector<std::vector<float>>;

Result<Answer> answer_alone(const LoadedModel& loaded, AnswerRequest request,
                            const std::optional<SparseRule>& sparse, LogitHistory& history,
                            Console& console) {
  request.sparse = sparse;
  request.print = false;
  request.on_logits = [&](std::span<const float> logits) {
    if (history.size() < kComparedTokens) history.emplace_back(logits.begin(), logits.end());
  };
  const std::unique_ptr<Sequence> sequence = loaded.engine->new_sequence();
  TRY(Answer answered, answer(loaded, *sequence, request, console));
  if (answered.cancelled()) return fail(ErrorCode::kInterrupted, "interrupted");
  return answered;
}

// Reads a page of the prompt, so that the first of two answers does not alone wait for the weights
// to come from the file.
Status warm_up(const LoadedModel& loaded, std::span<const TokenId> prompt) {
  GenerateOptions options;
  options.max_new_tokens = 0;
  options.cancel = &interrupt::flag();
  const std::unique_ptr<Sequence> sequence = loaded.engine->new_sequence();
  const size_t count = std::min<size_t>(prompt.size(), kPageTokens);
  TRY_STATUS(loaded.engine->generate(*sequence, prompt.first(count), options));
  return Ok{};
}

std::string one_answer(const char* name, const Answer& answer) {
  std::string text = formatted("--- %s", name);
  if (const std::optional<double> ms = answer.generation.ttft_ms) {
    text += formatted(": first token after %.2f s", *ms / 1e3);
  }
  text += "\n";
  text += answer.text;
  return text.ends_with('\n') ? text : text + "\n";
}

}  // namespace

std::optional<size_t> AnswerPair::first_difference() const {
  const std::vector<TokenId>& a = dense.generation.tokens;
  const std::vector<TokenId>& b = sparse.generation.tokens;
  const auto [at_a, at_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (at_a == a.end() && at_b == b.end()) return std::nullopt;
  return static_cast<size_t>(at_a - a.begin());
}

Result<AnswerPair> compare_answers(const LoadedModel& loaded, const AnswerRequest& request,
                                   Console& console) {
  AnswerPair pair;
  LogitHistory dense_logits;
  LogitHistory sparse_logits;
  TRY_STATUS(warm_up(loaded, request.prompt));
  TRY(pair.dense, answer_alone(loaded, request, std::nullopt, dense_logits, console));
  TRY(pair.sparse, answer_alone(loaded, request, request.sparse, sparse_logits, console));
  const size_t known = std::min(dense_logits.size(), sparse_logits.size());
  const size_t alike = pair.first_difference().value_or(known);
  for (size_t i = 0; i < known && i <= alike; ++i) {
    pair.kls.push_back(kl_divergence(dense_logits[i], sparse_logits[i]));
  }
  return pair;
}

boost::json::object pair_json(const AnswerPair& pair) {
  boost::json::object json{{"dense", answer_json(pair.dense)},
                           {"sparse", answer_json(pair.sparse)},
                           {"first_difference", nullptr},
                           {"kl", boost::json::array(pair.kls.begin(), pair.kls.end())},
                           {"mean_kl", mean(pair.kls)}};
  if (const std::optional<size_t> token = pair.first_difference()) {
    json["first_difference"] = *token;
  }
  return json;
}

std::string pair_text(const AnswerPair& pair) {
  std::string text = one_answer("dense", pair.dense) + one_answer("sparse", pair.sparse) + "---\n";
  const std::optional<size_t> token = pair.first_difference();
  text += token ? formatted("the answers differ from token %zu on\n", *token + 1)
                : "the answers are the same\n";
  const AttentionStats& attention = pair.sparse.generation.attention;
  const std::optional<double> sparse_ms = pair.sparse.generation.ttft_ms;
  const std::optional<double> dense_ms = pair.dense.generation.ttft_ms;
  if (sparse_ms && dense_ms) {
    text += formatted("first token: sparse / dense time %.3f\n", *sparse_ms / *dense_ms);
  }
  if (!pair.kls.empty()) {
    text += formatted("KL of the first token %.5f, mean of %zu tokens %.5f\n", pair.kls.front(),
                      pair.kls.size(), mean(pair.kls));
  }
  return text + formatted("density %.4f, effective density %.4f\n", attention.density(),
                          attention.effective_density());
}

}  // namespace winnow

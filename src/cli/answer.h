// One answer of a model: progress of the prompt on stderr, text as it comes, Ctrl+C, and the
// figures afterwards.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/loaded_model.h"
#include "engine/engine.h"

namespace winnow {

struct AnswerRequest {
  std::vector<TokenId> prompt = {};
  SamplerOptions sampling = {};
  std::vector<std::string> stops = {};
  int64_t max_new_tokens = -1;
  PrefixReuse reuse = PrefixReuse::kAll;
  std::optional<SparseRule> sparse = {};
  std::function<void(std::span<const float>)> on_logits = {};  // as in GenerateOptions
  bool print = true;  // whether the text goes to `console.out` as it comes
};

struct Answer {
  std::string text = {};  // as printed: valid UTF-8, cut before a stop string
  std::string matched_stop = {};
  Generation generation = {};
  int64_t prompt_tokens_held = 0;  // in the cache when the answer began, or when it was cancelled
  int num_threads = 1;

  bool cancelled() const { return generation.finish == FinishReason::kCancelled; }
};

Result<Answer> answer(const LoadedModel& loaded, Sequence& sequence, const AnswerRequest& request,
                      Console& console);

// "stop", "length", "context_full", "cancelled".
std::string_view finish_name(FinishReason reason);
// Steps that `generation.predicted_ms` covers; the first token comes with the prompt.
int64_t decode_steps(const Generation& generation);
// What `winnow run --json` prints; "attention" is there if some rows were sparse.
boost::json::object answer_json(const Answer& answer);
// One line for people: speeds, what sparse attention kept and took, memory.
std::string answer_summary(const Answer& answer);

}  // namespace winnow

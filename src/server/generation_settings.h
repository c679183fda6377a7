// GenerationSettings: what the generating endpoints have in common, read from a request's fields.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attention/sparse_rule.h"
#include "base/result.h"
#include "engine/generation_service.h"
#include "sampling/sampler.h"
#include "server/request_fields.h"
#include "tokenizer/tokenizer.h"

namespace winnow {

// How prompts and answers attend where a request does not say.
struct AttentionDefaults {
  std::string mode = "auto";       // "dense", "sparse" or "auto"
  SparseRule rule = {};            // of "sparse"
  int64_t auto_min_tokens = 4096;  // "auto" is dense below
};

struct GenerationSettings {
  SamplerOptions sampling = {};
  int64_t max_tokens = -1;
  int64_t min_tokens = 0;
  std::vector<std::string> stops = {};
  std::vector<TokenId> end_tokens = {};
  bool include_stop = false;
  int32_t n = 1;
  int32_t best_of = 1;
  bool logprobs = false;
  int32_t top_logprobs = 0;
  std::optional<int32_t> prompt_logprobs = {};  // and so many alternatives
  std::optional<SparseRule> sparse = {};
  std::optional<int64_t> truncate_prompt_tokens = {};
  bool cache_prompt = true;
  std::string cache_scope = {};  // within the client's own

  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;
  bool return_progress = false;
  bool timings_per_token = false;
  bool return_token_ids = false;
  bool record_map = false;
  double ping_interval_s = 15;
};

struct SettingsContext {
  const Tokenizer& tokenizer;
  const AttentionDefaults& attention;
  double ping_interval_s = 15;
};

// Requires that check_fields(request, endpoint) passed. kInvalidArgument naming a field.
Result<GenerationSettings> read_settings(const boost::json::object& request, Endpoint endpoint,
                                         const SettingsContext& context);

uint64_t random_seed();

// The request to the engine for choice `choice_idx`; the choices of a request draw with seeds of
// their own.
ServiceRequest service_request(const GenerationSettings& settings, std::vector<TokenId> prompt,
                               int32_t choice_idx);

// The last tokens of the prompt, if it was to be truncated.
void truncate_prompt(const GenerationSettings& settings, int64_t context_tokens,
                     std::vector<TokenId>& prompt);

}  // namespace winnow

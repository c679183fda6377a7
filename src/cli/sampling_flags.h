// The flags that choose how tokens are drawn and where an answer ends.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/flags.h"
#include "sampling/sampler.h"

namespace winnow {

struct SamplingFlags {
  SamplerOptions options;
  int64_t top_k = 0;
  std::vector<std::string> logit_bias;  // "ID=VALUE"
  std::optional<uint64_t> seed;
  std::vector<std::string> stops;
};

void add_sampling_flags(FlagSet& flags, SamplingFlags& target);

// The options for a model of `vocab_size` tokens; a seed that was not given is drawn.
Result<SamplerOptions> sampler_options(const SamplingFlags& flags, int32_t vocab_size);
// What can be checked before a model is at hand.
Status check_sampling_flags(const SamplingFlags& flags);

}  // namespace winnow

// How many tokens' K and V this machine has room for beside a model.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "model/model.h"

namespace winnow {

struct KvNeed {
  int64_t tokens = 0;        // as asked for; 0 = `most`, as far as memory allows
  int64_t most = 0;          // of use at most
  int64_t page_bytes = 0;    // of all layers, and of all sequences of that many tokens
  int64_t chunk_tokens = 0;  // of a step
};

// kOutOfMemory naming what is needed, what is free and what would fit.
Result<int64_t> choose_kv_tokens(const KvNeed& need, const Model& model);

}  // namespace winnow

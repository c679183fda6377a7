// How many tokens' K and V this machine has room for beside a model.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "model/decoder.h"
#include "model/model.h"

namespace winnow {

struct KvNeed {
  int64_t tokens = 0;      // as asked for; 0 = `most`, as far as memory allows
  int64_t most = 0;        // of use at most
  int64_t page_bytes = 0;  // of all layers, and of all sequences of that many tokens
  int64_t step_bytes = 0;  // of a step's rows and threads
};

// Tokens of a prompt in one step: as many as are asked for in whole pages, or as many as 128 MiB
// have room for; always up to 512.
int64_t choose_chunk_tokens(int64_t asked, const ModelConfig& config, const KernelTable& kernels,
                            const StepSize& size_of_others);

struct MachineMemory {
  int64_t available_bytes = 0;
  int64_t total_bytes = 0;
};

// What is left to others where nobody says how many tokens are wanted: a tenth of the memory, and
// 512 MiB of it unless that is more than a quarter.
int64_t spare_memory_bytes(int64_t total_bytes);

// kOutOfMemory naming what is needed, what is free and what would fit. A number of tokens that was
// asked for may take all that is free.
Result<int64_t> choose_kv_tokens(const KvNeed& need, const Model& model);
// The same for a model that needs `fixed_bytes` besides.
Result<int64_t> choose_kv_tokens(const KvNeed& need, int64_t fixed_bytes,
                                 const MachineMemory& memory);

}  // namespace winnow

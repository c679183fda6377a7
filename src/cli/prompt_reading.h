// Reading a text as a prompt, for what its attention shows on the way.
#pragma once

#include <optional>
#include <span>

#include "attention/sparse_attention.h"
#include "cli/console.h"
#include "cli/loaded_model.h"

namespace winnow {

// `observer` is told of every sparse tile. Shows progress. kInterrupted after Ctrl+C;
// kInvalidArgument if no row of the prompt was sparse.
Result<AttentionStats> read_sparsely(const LoadedModel& loaded, std::span<const TokenId> ids,
                                     const SparseRule& rule, SelectionObserver& observer,
                                     Console& console);

}  // namespace winnow

// A tile of FlashPrefill V2's rule: packed rows of a group. For attention/ only.
#pragma once

#include "attention/sparse_call.h"

namespace winnow {

void run_v2_tile(const SparseCall& call, const TileRows& rows, const SparseScratch& scratch,
                 AttentionStats& stats);

}  // namespace winnow

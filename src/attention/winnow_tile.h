// A tile of Winnow's own rule: kScoreRows positions of one query head. For attention/ only.
#pragma once

#include "attention/sparse_call.h"

namespace winnow {

void run_winnow_tile(const SparseCall& call, const TileRows& rows, const SparseScratch& scratch,
                     AttentionStats& stats);

}  // namespace winnow

// DenseProbe: what a sparse tile lost, found by computing it densely as well. For attention/ only.
#pragma once

#include <vector>

#include "attention/sparse_tile.h"
#include "kernels/attention_kernels.h"

namespace winnow {

class DenseProbe {
 public:
  // Of a tile that has visited the keys it keeps, and nothing else. All must outlive the probe.
  DenseProbe(const AttentionKernels& kernels, const HeadPages& pages, const AttentionTile& tile);

  // Computes the tile anew over every key, into memory of its own. Requires that the tile is
  // finished, whose scratch this uses.
  void run();

  // After run(), of one head of the tile's group.
  // The share of the dense softmax that lies on the keys that were kept, mean over the rows.
  double mass_kept(int head) const;
  // |out - dense out| / |dense out|, Euclidean over the rows.
  double output_error(int head) const;

 private:
  int64_t num_rows() const { return int64_t{tile_.queries} * tile_.group; }
  // log2 of the softmax denominator of each packed row, as far as the tile has visited keys.
  std::vector<double> masses(const AttentionTile& tile) const;

  const AttentionKernels& kernels_;
  const HeadPages& pages_;
  const AttentionTile& tile_;
  std::vector<double> kept_mass_;
  std::vector<double> dense_mass_ = {};
  std::vector<float> dense_out_ = {};  // laid out as the tile's out
};

}  // namespace winnow

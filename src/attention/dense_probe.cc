#include "attention/dense_probe.h"

#include <cmath>

#include "attention/block_visits.h"

namespace winnow {

DenseProbe::DenseProbe(const AttentionKernels& kernels, const HeadPages& pages,
                       const AttentionTile& tile)
    : kernels_(kernels), pages_(pages), tile_(tile), kept_mass_(masses(tile)) {}

std::vector<double> DenseProbe::masses(const AttentionTile& tile) const {
  const AttentionState state = kernels_.state(tile);
  std::vector<double> masses;
  for (int64_t row = 0; row < num_rows(); ++row) {
    masses.push_back(static_cast<double>(state.max[row]) +
                     std::log2(static_cast<double>(state.sum[row])));
  }
  return masses;
}

void DenseProbe::run() {
  const int64_t out_floats =
      (tile_.queries - 1) * tile_.query_stride + int64_t{tile_.group} * tile_.head_dim;
  dense_out_.resize(static_cast<size_t>(out_floats));
  AttentionTile dense = tile_;
  dense.out = dense_out_.data();
  kernels_.begin(dense);
  const int32_t end = tile_.first_position + tile_.queries;
  {
    BlockVisits visits(kernels_, dense);
    for (int32_t page_idx = 0; page_idx * kPageTokens < end; ++page_idx) {
      visits.add(pages_.block(page_idx));
    }
  }
  dense_mass_ = masses(dense);
  kernels_.finish(dense);
}

double DenseProbe::mass_kept(int head) const {
  double sum = 0;
  for (int32_t query = 0; query < tile_.queries; ++query) {
    const auto row = static_cast<size_t>(query * tile_.group + head);
    sum += std::exp2(kept_mass_[row] - dense_mass_[row]);
  }
  return sum / tile_.queries;
}

double DenseProbe::output_error(int head) const {
  double error = 0;
  double norm = 0;
  for (int32_t query = 0; query < tile_.queries; ++query) {
    const int64_t first = query * tile_.query_stride + int64_t{head} * tile_.head_dim;
    for (int64_t i = first; i < first + tile_.head_dim; ++i) {
      const auto dense = static_cast<double>(dense_out_[static_cast<size_t>(i)]);
      const double difference = static_cast<double>(tile_.out[i]) - dense;
      error += difference * difference;
      norm += dense * dense;
    }
  }
  return norm > 0 ? std::sqrt(error / norm) : 0;
}

}  // namespace winnow

#include "attention/sketch_basis.h"

#include <Eigen/Eigenvalues>
#include <algorithm>

#include "base/check.h"
#include "tensor/half.h"

namespace winnow {
namespace {

using Matrix = Eigen::MatrixXd;

// One block's centred keys: [block_tokens][head_dim].
void centred_keys(const KvLayout& layout, const uint16_t* k, int first_token, Matrix& keys) {
  for (int token = 0; token < layout.block_tokens; ++token) {
    for (int dim = 0; dim < layout.head_dim; ++dim) {
      keys(token, dim) = half_to_float(layout.dtype, k[layout.k_index(first_token + token, dim)]);
    }
  }
  keys.rowwise() -= keys.colwise().mean().eval();
}

Matrix matrix_of(const std::vector<float>& values, int head, int dims) {
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const float* begin = values.data() + int64_t{head} * dims * dims;
  return Eigen::Map<const RowMajor>(begin, dims, dims).cast<double>();
}

using Eigensystem = Eigen::SelfAdjointEigenSolver<Matrix>;

// A power of the symmetric matrix whose eigenvalues are held above a millionth of the largest.
Matrix power_of(const Eigensystem& solver, double power) {
  const double least = std::max(solver.eigenvalues().maxCoeff(), 1e-30) * 1e-6;
  const Eigen::VectorXd values = solver.eigenvalues().cwiseMax(least).array().pow(power).matrix();
  return solver.eigenvectors() * values.asDiagonal() * solver.eigenvectors().transpose();
}

// The eigenvectors of the `rank` largest eigenvalues.
Matrix leading(const Matrix& m, int rank) {
  const Eigensystem solver(m);
  return solver.eigenvectors().rightCols(rank);
}

void store(const Matrix& projection, float* to) {
  for (Eigen::Index dim = 0; dim < projection.rows(); ++dim) {
    for (Eigen::Index i = 0; i < projection.cols(); ++i) {
      *to++ = static_cast<float>(projection(dim, i));
    }
  }
}

Matrix normalized(const Matrix& moment) { return moment / std::max(moment.trace(), 1e-30); }

}  // namespace

std::vector<double> centred_key_moment(const KvLayerView& kv, std::span<const PageId> pages,
                                       int kv_head, int32_t num_tokens) {
  const KvLayout& layout = kv.layout;
  CHECK(num_tokens % layout.block_tokens == 0);
  CHECK(std::ssize(pages) * kPageTokens >= num_tokens);
  Matrix sum = Matrix::Zero(layout.head_dim, layout.head_dim);
  Matrix keys(layout.block_tokens, layout.head_dim);
  for (int32_t token = 0; token < num_tokens; token += layout.block_tokens) {
    const std::byte* page = kv.page(pages[static_cast<size_t>(token / kPageTokens)]);
    const auto* k = reinterpret_cast<const uint16_t*>(page + layout.k_offset(kv_head));
    centred_keys(layout, k, token % kPageTokens, keys);
    sum.noalias() += keys.transpose() * keys;
  }
  return {sum.data(), sum.data() + sum.size()};
}

SketchBasis empty_basis(const KvLayout& layout) {
  SketchBasis basis{.head_dim = layout.head_dim, .rank = layout.sketch_rank};
  const auto size = static_cast<size_t>(layout.kv_heads * basis.head_floats());
  basis.keys.resize(size);
  basis.queries.resize(size);
  return basis;
}

void fit_head(const KvLayerView& kv, std::span<const PageId> pages, int32_t num_tokens,
              const SketchMoments* prior, int kv_head, SketchBasis& basis) {
  const int dims = basis.head_dim;
  const std::vector<double> sum = centred_key_moment(kv, pages, kv_head, num_tokens);
  Matrix keys = normalized(Eigen::Map<const Matrix>(sum.data(), dims, dims));
  // Keys that are not finite: their pages' scores are NaN, and every block is kept.
  if (!keys.allFinite()) keys.setIdentity();
  const int64_t offset = kv_head * basis.head_floats();
  if (prior == nullptr) {
    const Matrix directions = leading(keys, basis.rank);
    store(directions, basis.keys.data() + offset);
    store(directions, basis.queries.data() + offset);
    return;
  }
  keys += normalized(matrix_of(prior->keys, kv_head, dims));
  const Eigensystem metric(normalized(matrix_of(prior->queries, kv_head, dims)));
  const Matrix root = power_of(metric, 0.5);
  const Matrix directions = leading(root * keys * root, basis.rank);
  store(root * directions, basis.keys.data() + offset);
  store(power_of(metric, -0.5) * directions, basis.queries.data() + offset);
}

}  // namespace winnow

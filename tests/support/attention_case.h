// For tests: one sequence's queries, keys and values over pages in a KvStore, and the same
// attention computed in double over contiguous memory.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "attention/attention.h"
#include "kernels/attention_kernels.h"
#include "support/guarded_buffer.h"
#include "tensor/half.h"

namespace winnow {

struct CaseShape {
  int tokens = 0;
  int kv_heads = 1;
  int group = 1;
  int head_dim = 64;
  int window = 0;
  float soft_cap = 0;
  KvDType dtype = KvDType::kBf16;

  int heads() const { return kv_heads * group; }
  std::string name() const {
    return "tokens " + std::to_string(tokens) + ", kv heads " + std::to_string(kv_heads) +
           ", group " + std::to_string(group) + ", head dim " + std::to_string(head_dim) +
           ", window " + std::to_string(window) + ", soft cap " + std::to_string(soft_cap) +
           (dtype == KvDType::kBf16 ? ", bf16" : ", f16");
  }
};

class AttentionCase {
 public:
  AttentionCase(const CaseShape& shape, uint32_t seed) : shape_(shape), rng_(seed) {
    std::normal_distribution<float> normal;
    q_ = random(shape.heads(), 1.5F);
    k_ = random(shape.kv_heads, 1.5F);
    v_ = random(shape.kv_heads, 1.0F);
    const int num_pages = (shape.tokens + kPageTokens - 1) / kPageTokens;
    const KvLayout layout{
        .kv_heads = shape.kv_heads, .head_dim = shape.head_dim, .dtype = shape.dtype};
    store_ = std::move(KvStore::create(std::span(&layout, 1), num_pages + 3)).value();
    for (int i = 0; i < num_pages; ++i) pages_.push_back(*store_->take());
    std::shuffle(pages_.begin(), pages_.end(), rng_);
  }

  const CaseShape& shape() const { return shape_; }
  std::vector<float>& k() { return k_; }
  std::vector<float>& v() { return v_; }
  std::span<const PageId> pages() const { return pages_; }
  KvLayerView kv() const { return store_->layer(0); }
  int64_t row_floats() const { return int64_t{shape_.heads()} * shape_.head_dim; }
  AttentionShape attention() const {
    return {shape_.heads(), 1 / std::sqrt(static_cast<float>(shape_.head_dim)), shape_.soft_cap,
            shape_.window};
  }

  // Overwrites every page, written or not.
  void fill_pages(std::byte value) {
    for (int64_t id = 0; id < store_->num_pages(); ++id) {
      std::fill_n(kv().page(static_cast<PageId>(id)), kv().page_bytes, value);
    }
  }
  void write(const KernelTable& kernels, int begin, int end) {
    const int64_t offset = int64_t{begin} * shape_.kv_heads * shape_.head_dim;
    write_kv(kernels, kv(), pages_, begin, end - begin, k_.data() + offset, v_.data() + offset);
  }

  AttentionRows rows(int begin, int end, float* out) const {
    return {begin, end - begin, q_.data() + begin * row_floats(), out, pages_};
  }

  // Writes and attends to the tokens in chunks.
  std::vector<float> prompt(const KernelTable& kernels, int chunk, ThreadPool& pool) {
    std::vector<float> out;
    AttentionScratch scratch;
    AttentionStats stats;
    for (int begin = 0; begin < shape_.tokens; begin += chunk) {
      const int end = std::min(shape_.tokens, begin + chunk);
      write(kernels, begin, end);
      GuardedBuffer<float> rows_out(static_cast<size_t>((end - begin) * row_floats()));
      GuardedBuffer<float> rows_q(rows_out.size());
      std::copy_n(q_.data() + begin * row_floats(), rows_q.size(), rows_q.data());
      AttentionRows chunk_rows = rows(begin, end, rows_out.data());
      chunk_rows.q = rows_q.data();
      prompt_attention(kernels, attention(), kv(), chunk_rows, pool, scratch, stats);
      out.insert(out.end(), rows_out.data(), rows_out.data() + rows_out.size());
    }
    return out;
  }

  struct Expected {
    double value;
    double bound;
  };

  // Output of one query head at one position, in double from the numbers as stored, with the error
  // that an f32 computation may have. `product_epsilon` is the relative rounding of the operands of
  // the products.
  std::vector<Expected> expected(int position, int head, double product_epsilon) const {
    const int dims = shape_.head_dim;
    const int kv_head = head / shape_.group;
    const AttentionShape attention_shape = attention();
    const double cap = shape_.soft_cap;
    const int first = shape_.window > 0 ? std::max(0, position - shape_.window + 1) : 0;
    const float* q = q_.data() + position * row_floats() + int64_t{head} * dims;
    constexpr double kEpsilon = 0x1p-24;
    std::vector<double> logits;
    double logit_error = 0;
    double max = -INFINITY;
    for (int token = first; token <= position; ++token) {
      double dot = 0;
      double magnitude = 0;
      for (int dim = 0; dim < dims; ++dim) {
        const double product = double{q[dim]} * stored(k_, token, kv_head, dim);
        dot += product;
        magnitude += std::abs(product);
      }
      const double logit = dot * attention_shape.scale;
      // Roundings of the sum, of the scale and of the change to log2.
      double error = magnitude * attention_shape.scale * ((dims + 8) * kEpsilon + product_epsilon);
      if (cap > 0) error += cap * 1e-6;
      logit_error = std::max(logit_error, error);
      logits.push_back(cap > 0 ? cap * std::tanh(logit / cap) : logit);
      max = std::max(max, logits.back());
    }
    double sum = 0;
    for (double& logit : logits) sum += logit = std::exp(logit - max);
    // Every weight is wrong by the logits' errors, the exponential's and its own rounding; a sum of
    // n terms in f32 adds n roundings at most.
    const auto count = static_cast<double>(logits.size());
    const double relative =
        std::expm1(2 * logit_error) * 2 + (2 * count + 60) * kEpsilon + 1e-6 + 2 * product_epsilon;
    std::vector<Expected> out;
    for (int dim = 0; dim < dims; ++dim) {
      Expected expected{0, 0};
      for (int token = first; token <= position; ++token) {
        const double weight = logits[static_cast<size_t>(token - first)] / sum;
        const double value = stored(v_, token, kv_head, dim);
        expected.value += weight * value;
        expected.bound += weight * std::abs(value);
      }
      expected.bound *= relative;
      out.push_back(expected);
    }
    return out;
  }

 private:
  std::vector<float> random(int heads, float deviation) {
    std::normal_distribution<float> normal(0, deviation);
    std::vector<float> values(static_cast<size_t>(shape_.tokens) * heads * shape_.head_dim);
    for (float& value : values) value = normal(rng_);
    return values;
  }
  double stored(const std::vector<float>& values, int token, int kv_head, int dim) const {
    const size_t idx =
        (static_cast<size_t>(token) * shape_.kv_heads + kv_head) * shape_.head_dim + dim;
    return half_to_float(shape_.dtype, half_from_float(shape_.dtype, values[idx]));
  }

  CaseShape shape_;
  std::mt19937 rng_;
  std::vector<float> q_, k_, v_;
  std::unique_ptr<KvStore> store_;
  std::vector<PageId> pages_;
};

}  // namespace winnow

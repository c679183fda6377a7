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
#include "kernels/table.h"
#include "support/f32_limits.h"
#include "support/guarded_buffer.h"
#include "tensor/half.h"

namespace winnow {

inline const KernelTable& scalar_kernels() { return kernel_table(known_isas().front()); }

// Levels whose products take bf16 operands round q and the weights to 8 bits.
inline double product_epsilon(Isa isa, KvDType dtype) {
  const bool rounds = isa == Isa::kAvx512Bf16 || isa == Isa::kAmx;
  return rounds && dtype == KvDType::kBf16 ? 0x1p-8 : 0;
}

struct CaseShape {
  int tokens = 0;
  int kv_heads = 1;
  int group = 1;
  int head_dim = 64;
  int window = 0;
  float soft_cap = 0;
  KvDType dtype = KvDType::kBf16;
  int sketch_rank = 0;

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
    q_ = random(shape.heads(), 1.5F);
    k_ = random(shape.kv_heads, 1.5F);
    v_ = random(shape.kv_heads, 1.0F);
    const int num_pages = (shape.tokens + kPageTokens - 1) / kPageTokens;
    const KvLayout layout{.kv_heads = shape.kv_heads,
                          .head_dim = shape.head_dim,
                          .dtype = shape.dtype,
                          .sketch_rank = shape.sketch_rank};
    store_ = std::move(KvStore::create(std::span(&layout, 1), num_pages + 3)).value();
    for (int i = 0; i < num_pages; ++i) pages_.push_back(*store_->pool().take());
    std::shuffle(pages_.begin(), pages_.end(), rng_);
  }

  const CaseShape& shape() const { return shape_; }
  std::vector<float>& q() { return q_; }
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

  // What one query head at one position attends to, collected key by key, in double from the
  // numbers as stored, with the error that an f32 computation may have. `product_epsilon` is the
  // relative rounding of the operands of the products.
  class ExpectedRow {
   public:
    ExpectedRow(const AttentionCase& c, int position, int head, double product_epsilon)
        : c_(c),
          q_(c.query(position, head)),
          kv_head_(head / c.shape_.group),
          product_epsilon_(product_epsilon) {}

    void add_token(int token) {
      const double cap = c_.shape_.soft_cap;
      const Dot dot = dot_with(token, 1, product_epsilon_);
      Key key{cap > 0 ? cap * std::tanh(dot.value / cap) : dot.value, {}, {}};
      logit_error_ = std::max(logit_error_, dot.error + (cap > 0 ? cap * 1e-6 : 0));
      add(std::move(key), token, 1);
    }
    // Tokens [first, first + count) as one key: their mean key and value, with their number as
    // weight. It bypasses the soft cap.
    void add_mean(int first, int count) {
      const Dot dot = dot_with(first, count, 0);
      logit_error_ = std::max(logit_error_, dot.error + 4 * kEpsilon);
      add({dot.value + std::log(count), {}, {}}, first, count);
    }
    // Sum of exp(logit) over what was added, and a bound of its relative error.
    double mass() const {
      double sum = 0;
      for (const Key& key : keys_) sum += std::exp(key.logit);
      return sum;
    }
    double relative_error() const {
      // Every weight is wrong by the logits' errors, the exponential's and its own rounding; a sum
      // of n terms in f32 adds n roundings at most, and so does the mean of n.
      const auto count = static_cast<double>(keys_.size());
      return std::expm1(2 * logit_error_) * 2 + (2 * count + 60) * kEpsilon + 1e-6 +
             2 * product_epsilon_ + 2 * kPageTokens * kEpsilon * (has_means_ ? 1 : 0);
    }
    std::vector<Expected> result() const {
      double max = -INFINITY;
      for (const Key& key : keys_) max = std::max(max, key.logit);
      double sum = 0;
      for (const Key& key : keys_) sum += std::exp(key.logit - max);
      std::vector<Expected> out(static_cast<size_t>(c_.shape_.head_dim));
      for (const Key& key : keys_) {
        const double weight = std::exp(key.logit - max) / sum;
        for (size_t dim = 0; dim < out.size(); ++dim) {
          out[dim].value += weight * key.value[dim];
          out[dim].bound += weight * key.magnitude[dim];
        }
      }
      for (Expected& expected : out) expected.bound *= relative_error();
      return out;
    }

   private:
    struct Key {
      double logit;
      std::vector<double> value;
      std::vector<double> magnitude;  // mean of the values' magnitudes
    };
    struct Dot {
      double value;
      double error;
    };

    // scale * q . (mean of keys), with roundings of the means, the sum, the scale and the change to
    // log2.
    Dot dot_with(int first, int count, double product_epsilon) const {
      double dot = 0;
      double magnitude = 0;
      for (int token = first; token < first + count; ++token) {
        for (int dim = 0; dim < c_.shape_.head_dim; ++dim) {
          const double product = double{q_[dim]} * c_.stored_k(token, kv_head_, dim) / count;
          dot += product;
          magnitude += std::abs(product);
        }
      }
      const double scale = c_.attention().scale;
      const double roundings = c_.shape_.head_dim + 8 + (count > 1 ? count : 0);
      return {dot * scale, magnitude * scale * (roundings * kEpsilon + product_epsilon)};
    }
    void add(Key key, int first, int count) {
      has_means_ = has_means_ || count > 1;
      for (int dim = 0; dim < c_.shape_.head_dim; ++dim) {
        double value = 0;
        double magnitude = 0;
        for (int token = first; token < first + count; ++token) {
          value += c_.stored_v(token, kv_head_, dim);
          magnitude += std::abs(c_.stored_v(token, kv_head_, dim));
        }
        key.value.push_back(value / count);
        key.magnitude.push_back(magnitude / count);
      }
      keys_.push_back(std::move(key));
    }

    const AttentionCase& c_;
    const float* q_;
    int kv_head_;
    double product_epsilon_;
    bool has_means_ = false;
    double logit_error_ = 0;
    std::vector<Key> keys_;
  };

  // Output of one query head at one position under dense attention.
  std::vector<Expected> expected(int position, int head, double product_epsilon) const {
    ExpectedRow row(*this, position, head, product_epsilon);
    const int first = shape_.window > 0 ? std::max(0, position - shape_.window + 1) : 0;
    for (int token = first; token <= position; ++token) row.add_token(token);
    return row.result();
  }

  const float* query(int position, int head) const {
    return q_.data() + position * row_floats() + int64_t{head} * shape_.head_dim;
  }
  // As the page holds them.
  double stored_k(int token, int kv_head, int dim) const { return stored(k_, token, kv_head, dim); }
  double stored_v(int token, int kv_head, int dim) const { return stored(v_, token, kv_head, dim); }

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

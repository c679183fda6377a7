// The two matrix products of attention, on strips of rows: logits = q . k, and acc += weights . v.
// The second operand comes in groups of 16 tokens (K) or 16 dims (V), side by side, one 32-bit unit
// each: a float converted from the page, or a pair of bf16 numbers as the page has it. Include
// inside isa/ files only.
#pragma once

#include "kernels/generic/attention_state.inl.h"

namespace winnow {
namespace {

// c[row][16 * group + lane] (+)= sum over units of a[row] * b[group][lane], one chain of Dot::add
// per element in ascending order of units: the bits depend neither on Rows nor on Groups. kARow and
// kAUnit are the distances of a's rows and units.
template <class S, class Dot, int Rows, int Groups, int64_t kARow, int64_t kAUnit>
struct RegisterTile {
  static constexpr int kVecs = kKvLanes / S::kLanes;
  using Vec = typename S::Vec;
  Vec c[Rows][Groups * kVecs];

  [[gnu::always_inline]] inline void clear() {
#pragma GCC unroll 16
    for (int row = 0; row < Rows; ++row) {
#pragma GCC unroll 16
      for (int i = 0; i < Groups * kVecs; ++i) c[row][i] = S::zero();
    }
  }

  [[gnu::always_inline]] inline void load_scaled(const float* from, int64_t stride,
                                                 const float* factors) {
#pragma GCC unroll 16
    for (int row = 0; row < Rows; ++row) {
      const Vec factor = S::set1(factors[row]);
#pragma GCC unroll 16
      for (int i = 0; i < Groups * kVecs; ++i) {
        c[row][i] = S::mul(S::load(from + row * stride + i * S::kLanes), factor);
      }
    }
  }

  [[gnu::always_inline]] inline void store(float* to, int64_t stride) const {
#pragma GCC unroll 16
    for (int row = 0; row < Rows; ++row) {
#pragma GCC unroll 16
      for (int i = 0; i < Groups * kVecs; ++i) {
        S::store(to + row * stride + i * S::kLanes, c[row][i]);
      }
    }
  }

  [[gnu::always_inline]] inline void accumulate(const float* a, const float* b,
                                                int64_t group_stride, int32_t units) {
    for (int32_t unit = 0; unit < units; ++unit) {
      Vec right[Groups * kVecs];
#pragma GCC unroll 16
      for (int i = 0; i < Groups * kVecs; ++i) {
        right[i] = S::load(b + i / kVecs * group_stride + i % kVecs * S::kLanes);
      }
#pragma GCC unroll 16
      for (int row = 0; row < Rows; ++row) {
        const Vec left = S::set1(a[row * kARow]);
#pragma GCC unroll 16
        for (int i = 0; i < Groups * kVecs; ++i) c[row][i] = Dot::add(left, right[i], c[row][i]);
      }
      a += kAUnit;
      b += kKvLanes;
    }
  }
};

// Calls Body<rows>::run(arguments...) for 1 <= rows <= kMax.
template <template <int> class Body, int kMax, class... Args>
[[gnu::always_inline]] inline void for_rows(int32_t rows, Args... args) {
  if constexpr (kMax > 0) {
    if (rows == kMax) {
      Body<kMax>::run(args...);
    } else {
      for_rows<Body, kMax - 1>(rows, args...);
    }
  }
}

// One part of a page's K or V in the form the products take: group g starts at data + g *
// group_stride.
struct Operand {
  const float* data;
  int64_t group_stride;
};

// Products of vector registers. Dot says how units multiply and how they are made:
//   kNumbers                        16-bit numbers per unit
//   add(a, b, c)                    a * b + c, unit by unit
//   convert(dtype, from, pairs, to) the operand's `pairs` rows of 16 pairs, or `from` itself
//   pack_row(q, dims, scale, to)    q * scale as units kStripRows apart
//   store_weights(row, token, w)    kLanes weights of a row
template <class S, class Dot>
struct VectorProducts {
  static constexpr int kStripRows = S::kStripRows;
  // So many rows leave registers for two groups at a time.
  static constexpr int kPairedRows = S::kPairedRows;
  static constexpr int kWeightStride = kPageTokens;

  static int32_t units(int32_t numbers) { return numbers / Dot::kNumbers; }

  static void pack_q_row(const AttentionTile& tile, const float* row, float scale, float* q,
                         int32_t strip, int32_t row_in_strip) {
    Dot::pack_row(row, tile.head_dim, scale,
                  q + int64_t{strip} * kStripRows * units(tile.head_dim) + row_in_strip);
  }

  // K of tokens [token, token + kStepTokens).
  static Operand prepare_k(const AttentionTile& tile, const uint16_t* k, int32_t token,
                           float* buffer) {
    const int32_t pairs = tile.head_dim / 2;
    const uint16_t* from = k + int64_t{token} * tile.head_dim;
    const float* data = Dot::convert(tile.dtype, from, 2 * pairs, buffer);
    return {data, int64_t{units(tile.head_dim)} * kKvLanes};
  }

  // V of `tokens` for num_groups groups of 16 dims, with room for the tokens before them.
  static Operand prepare_v(const AttentionTile& tile, const uint16_t* v, int32_t num_groups,
                           TokenRange tokens, float* buffer) {
    constexpr int64_t kStride = int64_t{kPageTokens} / Dot::kNumbers * kKvLanes;
    const float* data = buffer;
    for (int32_t group = 0; group < num_groups; ++group) {
      const int64_t offset = int64_t{units(tokens.begin)} * kKvLanes;
      const uint16_t* from = v + (int64_t{group} * kVGroupUnits + tokens.begin / 2 * kKvLanes) * 2;
      const float* converted = Dot::convert(tile.dtype, from, (tokens.end - tokens.begin) / 2,
                                            buffer + group * kStride + offset);
      if (group == 0) data = converted - offset;
    }
    return {data, kStride};
  }

  template <int Rows, int Groups>
  using LogitTile = RegisterTile<S, Dot, Rows, Groups, 1, kStripRows>;

  template <int Rows>
  struct Logits {
    static void run(const float* q, Operand k, int32_t units, float* logits) {
      constexpr int kGroups = Rows <= kPairedRows ? 2 : 1;
      for (int group = 0; group < 2; group += kGroups) {
        LogitTile<Rows, kGroups> tile;
        tile.clear();
        tile.accumulate(q, k.data + group * k.group_stride, k.group_stride, units);
        tile.store(logits + group * kKvLanes, kPageTokens);
      }
    }
  };

  // Logits of the first `rows` rows of a strip with the kStepTokens tokens of `k`.
  static void logits(const AttentionTile& tile, const float* q, int32_t strip, int32_t rows,
                     Operand k, float* logits) {
    const int32_t num_units = units(tile.head_dim);
    for_rows<Logits, kStripRows>(rows, q + int64_t{strip} * kStripRows * num_units, k, num_units,
                                 logits);
  }

  template <int Rows, int Groups>
  using WeightTile = RegisterTile<S, Dot, Rows, Groups, kPageTokens, 1>;

  template <int Rows, int Groups>
  [[gnu::always_inline]] static inline void weigh_groups(const float* weights, Operand v,
                                                         int32_t units, const float* shrink,
                                                         float* acc, int64_t stride) {
    WeightTile<Rows, Groups> tile;
    tile.load_scaled(acc, stride, shrink);
    tile.accumulate(weights, v.data, v.group_stride, units);
    tile.store(acc, stride);
  }

  template <int Rows>
  struct Weigh {
    static void run(const float* weights, Operand v, int32_t units, const float* shrink, float* acc,
                    int64_t stride, int32_t num_groups) {
      if constexpr (Rows <= kPairedRows) {
        if (num_groups == 2) {
          weigh_groups<Rows, 2>(weights, v, units, shrink, acc, stride);
          return;
        }
      }
      for (int32_t group = 0; group < num_groups; ++group) {
        const Operand one{v.data + group * v.group_stride, v.group_stride};
        weigh_groups<Rows, 1>(weights, one, units, shrink, acc + group * kKvLanes, stride);
      }
    }
  };

  [[gnu::always_inline]] static inline void store_weights(float* row, int32_t token,
                                                          typename S::Vec weights) {
    Dot::store_weights(row, token, weights);
  }

  // acc = acc * shrink + weights . v over `tokens`, whose weights stand from `weights_begin` on,
  // for `rows` rows and num_groups groups of 16 dims.
  static void weigh(const AttentionTile& tile, const float* weights, int32_t weights_begin,
                    int32_t rows, Operand v, int32_t num_groups, TokenRange tokens,
                    const float* shrink, float* acc) {
    const int32_t first = units(tokens.begin);
    const Operand from{v.data + int64_t{first} * kKvLanes, v.group_stride};
    for_rows<Weigh, kStripRows>(rows, weights + units(weights_begin), from,
                                units(tokens.end) - first, shrink, acc, int64_t{tile.head_dim},
                                num_groups);
  }
};

template <class S>
[[gnu::always_inline]] inline void split_halves(KvDType dtype, typename S::Bits pairs,
                                                typename S::Vec& first, typename S::Vec& second) {
  if (dtype == KvDType::kBf16) {
    S::split_bf16(pairs, first, second);
  } else {
    S::split_f16(pairs, first, second);
  }
}

// Pairs of 16-bit numbers, 16 side by side, to two rows of 16 floats each.
template <class S>
[[gnu::always_inline]] inline void convert_pairs(KvDType dtype, const uint16_t* from, int32_t pairs,
                                                 float* to) {
  const auto* units = reinterpret_cast<const uint32_t*>(from);
  for (int32_t pair = 0; pair < pairs; ++pair) {
#pragma GCC unroll 4
    for (int lane = 0; lane < kKvLanes; lane += S::kLanes) {
      typename S::Vec first, second;
      split_halves<S>(dtype, S::load_bits(units + lane), first, second);
      S::store(to + lane, first);
      S::store(to + kKvLanes + lane, second);
    }
    units += kKvLanes;
    to += 2 * kKvLanes;
  }
}

// f32 products: the operands are converted once for all strips.
template <class S>
struct FloatDot {
  using Vec = typename S::Vec;
  static constexpr int kNumbers = 1;

  [[gnu::always_inline]] static inline Vec add(Vec a, Vec b, Vec c) { return S::fma(a, b, c); }

  static const float* convert(KvDType dtype, const uint16_t* from, int32_t pairs, float* to) {
    if (dtype == KvDType::kBf16) {
      convert_pairs<S>(KvDType::kBf16, from, pairs, to);
    } else {
      convert_pairs<S>(KvDType::kF16, from, pairs, to);
    }
    return to;
  }
  static void pack_row(const float* row, int32_t dims, float scale, float* to) {
    for (int32_t dim = 0; dim < dims; ++dim) to[dim * S::kStripRows] = row[dim] * scale;
  }
  [[gnu::always_inline]] static inline void store_weights(float* row, int32_t token, Vec weights) {
    S::store(row + token, weights);
  }
};

inline const uint16_t* v_group(const uint16_t* v, int32_t dim) {
  return v + int64_t{dim / kKvLanes} * kVGroupUnits * 2;
}

// V of num_groups groups of dims as a row that sees only `seen` may read it.
inline void copy_seen(const uint16_t* v, int32_t num_groups, TokenRange seen, uint16_t* to) {
  for (int32_t i = 0; i < num_groups * kVGroupUnits * 2; ++i) {
    const int32_t token = i % (2 * kVGroupUnits) / (2 * kKvLanes) * 2 + i % 2;
    to[i] = seen.begin <= token && token < seen.end ? v[i] : uint16_t{0};
  }
}

template <class S>
inline bool all_finite(const AttentionTile& tile, const uint16_t* v, TokenRange tokens) {
  using Vec = typename S::Vec;
  // Zero times an infinity or NaN is NaN.
  Vec zeros = S::zero();
  for (int32_t dim = 0; dim < tile.head_dim; dim += kKvLanes) {
    const auto* units = reinterpret_cast<const uint32_t*>(v_group(v, dim));
    for (int32_t i = tokens.begin / 2 * kKvLanes; i < tokens.end / 2 * kKvLanes; i += S::kLanes) {
      Vec first, second;
      split_halves<S>(tile.dtype, S::load_bits(units + i), first, second);
      zeros = S::fma(first, S::zero(), S::fma(second, S::zero(), zeros));
    }
  }
  return S::sum(zeros) == 0;
}

}  // namespace
}  // namespace winnow

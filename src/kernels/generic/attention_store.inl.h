// Writes new K and V into a page, in 16 bits. Include inside isa/ files only.
#pragma once

#include "kernels/generic/attention_state.inl.h"

namespace winnow {
namespace {

template <class S>
struct KvWriter {
  using Vec = typename S::Vec;
  using Bits = typename S::Bits;
  static constexpr float kMaxF16 = 65504.0F;
  static constexpr int32_t kMaxHeadDim = 256;

  static void store(const KvTokens& tokens) {
    auto* k = reinterpret_cast<uint32_t*>(tokens.k_page);
    for (int32_t i = 0; i < tokens.num_tokens; ++i) {
      store_k(tokens, tokens.k + i * tokens.stride, tokens.first_token + i, k);
    }
    auto* v = reinterpret_cast<uint32_t*>(tokens.v_page);
    for (int32_t i = 0; i < tokens.num_tokens;) {
      const float* row = tokens.v + i * tokens.stride;
      const int32_t token = tokens.first_token + i;
      if (token % 2 == 0 && i + 1 < tokens.num_tokens) {
        store_v_pair(tokens, row, row + tokens.stride, token, v);
        i += 2;
      } else {
        store_v(tokens, row, token, v);
        i += 1;
      }
    }
  }

 private:
  static Bits to_half(KvDType dtype, const float* p) {
    const Vec v = S::load(p);
    if (dtype == KvDType::kBf16) return S::to_bf16(v);
    return S::to_f16(S::at_most(S::at_least(v, S::set1(-kMaxF16)), S::set1(kMaxF16)));
  }

  static void row_to_halves(const KvTokens& tokens, const float* row, uint32_t* halves) {
    for (int32_t dim = 0; dim < tokens.head_dim; dim += S::kLanes) {
      S::store_bits(halves + dim, to_half(tokens.dtype, row + dim));
    }
  }

  static void store_k(const KvTokens& tokens, const float* row, int32_t token, uint32_t* page) {
    uint32_t halves[kMaxHeadDim];
    row_to_halves(tokens, row, halves);
    uint32_t* to =
        page + int64_t{token / kKvLanes} * (tokens.head_dim / 2) * kKvLanes + token % kKvLanes;
    for (int32_t pair = 0; pair < tokens.head_dim / 2; ++pair) {
      to[pair * kKvLanes] = halves[2 * pair] | halves[2 * pair + 1] << 16;
    }
  }

  // Where the unit of (token, dim) and its neighbour lies.
  static uint32_t* v_unit(uint32_t* page, int32_t token, int32_t dim) {
    return page + int64_t{dim / kKvLanes} * kVGroupUnits + token / 2 * kKvLanes + dim % kKvLanes;
  }

  static void store_v_pair(const KvTokens& tokens, const float* even, const float* odd,
                           int32_t token, uint32_t* page) {
    for (int32_t dim = 0; dim < tokens.head_dim; dim += S::kLanes) {
      S::store_bits(v_unit(page, token, dim), S::join_halves(to_half(tokens.dtype, even + dim),
                                                             to_half(tokens.dtype, odd + dim)));
    }
  }

  // A token whose pair partner is not written now: its half of the unit alone.
  static void store_v(const KvTokens& tokens, const float* row, int32_t token, uint32_t* page) {
    uint32_t halves[kMaxHeadDim];
    row_to_halves(tokens, row, halves);
    for (int32_t dim = 0; dim < tokens.head_dim; ++dim) {
      auto* unit = reinterpret_cast<uint16_t*>(v_unit(page, token, dim));
      unit[token % 2] = static_cast<uint16_t>(halves[dim]);
    }
  }
};

}  // namespace
}  // namespace winnow

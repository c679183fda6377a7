#include "kernels/ref/weight_groups.h"

#include <cmath>
#include <cstring>

#include "base/check.h"
#include "kernels/linear_kernels.h"
#include "tensor/half.h"

namespace winnow::ref {
namespace {

constexpr int kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                1,    13,   25,  38,  53,  69,  89,  113};
// Twice the fp4 (e2m1) values, so that they are integers.
constexpr int kFp4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

int byte_at(const std::byte* data, int offset) { return static_cast<int>(data[offset]); }

float half_at(const std::byte* data, int offset) {
  uint16_t bits;
  std::memcpy(&bits, data + offset, sizeof(bits));
  return f16_to_float(bits);
}

void set_scales(WeightGroup& group, float d, float m) {
  group.d[0] = group.d[1] = d;
  group.m[0] = group.m[1] = m;
}

// 16 bytes: low nibbles are elements 0..15, high nibbles 16..31.
void read_nibbles(const std::byte* data, WeightGroup& group) {
  for (int i = 0; i < 16; ++i) {
    group.codes[i] = byte_at(data, i) & 15;
    group.codes[i + 16] = byte_at(data, i) >> 4;
  }
}

// One more bit for each of 32 codes, from the bits of a little-endian word.
void add_fifth_bits(const std::byte* data, WeightGroup& group) {
  for (int i = 0; i < 32; ++i) group.codes[i] += (byte_at(data, i / 8) >> (i % 8) & 1) << 4;
}

void map_codes(const int* values, WeightGroup& group) {
  for (int& code : group.codes) code = values[code];
}

void read_q8_0(const std::byte* data, WeightGroup& group) {
  for (int i = 0; i < 32; ++i) group.codes[i] = int{static_cast<int8_t>(data[2 + i])};
  set_scales(group, half_at(data, 0), 0);
}

// Q4_K and Q5_K: 8 scales and 8 minimums of 6 bits in 12 bytes.
void read_six_bit_scales(const std::byte* data, int sub, WeightGroup& group) {
  const std::byte* packed = data + 4;
  int scale, minimum;
  if (sub < 4) {
    scale = byte_at(packed, sub) & 63;
    minimum = byte_at(packed, sub + 4) & 63;
  } else {
    scale = (byte_at(packed, sub + 4) & 15) | (byte_at(packed, sub - 4) >> 6) << 4;
    minimum = byte_at(packed, sub + 4) >> 4 | (byte_at(packed, sub) >> 6) << 4;
  }
  set_scales(group, half_at(data, 0) * static_cast<float>(scale),
             -half_at(data, 2) * static_cast<float>(minimum));
}

// Q4_K and Q5_K: 32 bytes hold one group in their low nibbles and the next in their high nibbles.
void read_paired_nibbles(const std::byte* data, int sub, WeightGroup& group) {
  for (int i = 0; i < 32; ++i)
    group.codes[i] = byte_at(data, sub / 2 * 32 + i) >> (sub % 2 * 4) & 15;
}

void read_q5_k(const std::byte* data, int sub, WeightGroup& group) {
  read_paired_nibbles(data + 48, sub, group);
  for (int i = 0; i < 32; ++i) group.codes[i] |= (byte_at(data, 16 + i) >> sub & 1) << 4;
  read_six_bit_scales(data, sub, group);
}

void read_q6_k(const std::byte* data, int sub, WeightGroup& group) {
  const int half = sub / 4, part = sub % 4;
  for (int i = 0; i < 32; ++i) {
    const int low = byte_at(data, half * 64 + part % 2 * 32 + i) >> (part / 2 * 4) & 15;
    const int high = byte_at(data, 128 + half * 32 + i) >> (part * 2) & 3;
    group.codes[i] = low | high << 4;
  }
  for (int h = 0; h < 2; ++h) {
    const auto scale = static_cast<float>(static_cast<int8_t>(data[192 + sub * 2 + h]));
    group.d[h] = half_at(data, 208) * scale;
    group.m[h] = -32.0f * group.d[h];
  }
}

void read_two_bits(const std::byte* data, int sub, WeightGroup& group) {
  for (int i = 0; i < 32; ++i)
    group.codes[i] = byte_at(data, sub / 4 * 32 + i) >> (sub % 4 * 2) & 3;
}

void read_q2_k(const std::byte* data, int sub, WeightGroup& group) {
  read_two_bits(data + 16, sub, group);
  for (int h = 0; h < 2; ++h) {
    const int packed = byte_at(data, sub * 2 + h);
    group.d[h] = half_at(data, 80) * static_cast<float>(packed & 15);
    group.m[h] = -half_at(data, 82) * static_cast<float>(packed >> 4);
  }
}

void read_q3_k(const std::byte* data, int sub, WeightGroup& group) {
  read_two_bits(data + 32, sub, group);
  for (int i = 0; i < 32; ++i) group.codes[i] |= (byte_at(data, i) >> sub & 1) << 2;
  const std::byte* packed = data + 96;
  for (int h = 0; h < 2; ++h) {
    const int i = sub * 2 + h;
    const int low = byte_at(packed, i % 8) >> (i / 8 * 4) & 15;
    const int high = byte_at(packed, 8 + i % 4) >> (i / 4 * 2) & 3;
    group.d[h] = half_at(data, 108) * static_cast<float>((low | high << 4) - 32);
    group.m[h] = -4.0f * group.d[h];
  }
}

void read_iq4_xs(const std::byte* data, int sub, WeightGroup& group) {
  read_nibbles(data + 8 + sub * 16, group);
  map_codes(kIq4Values, group);
  const int low = byte_at(data, 4 + sub / 2) >> (sub % 2 * 4) & 15;
  const int high = (byte_at(data, 2) | byte_at(data, 3) << 8) >> (sub * 2) & 3;
  set_scales(group, half_at(data, 0) * static_cast<float>((low | high << 4) - 32), 0);
}

// Codes are the doubled fp4 values plus 12; the power-of-two scale is halved to match.
void read_mxfp4(const std::byte* data, WeightGroup& group) {
  read_nibbles(data + 1, group);
  map_codes(kFp4Values, group);
  for (int& code : group.codes) code += 12;
  const float d = std::ldexp(1.0f, byte_at(data, 0) - 128);
  set_scales(group, d, -12.0f * d);
}

}  // namespace

WeightGroup read_weight_group(DType dtype, const std::byte* row, int64_t group_idx) {
  const DTypeInfo& info = dtype_info(dtype);
  const int subs = info.group_size / 32;
  const std::byte* data = row + group_idx / subs * info.group_bytes;
  const int sub = static_cast<int>(group_idx % subs);
  WeightGroup group;
  switch (dtype) {
    case DType::kQ4_0:
      read_nibbles(data + 2, group);
      set_scales(group, half_at(data, 0), -8.0f * half_at(data, 0));
      break;
    case DType::kQ4_1:
      read_nibbles(data + 4, group);
      set_scales(group, half_at(data, 0), half_at(data, 2));
      break;
    case DType::kQ5_0:
      read_nibbles(data + 6, group);
      add_fifth_bits(data + 2, group);
      set_scales(group, half_at(data, 0), -16.0f * half_at(data, 0));
      break;
    case DType::kQ5_1:
      read_nibbles(data + 8, group);
      add_fifth_bits(data + 4, group);
      set_scales(group, half_at(data, 0), half_at(data, 2));
      break;
    case DType::kQ8_0:
      read_q8_0(data, group);
      break;
    case DType::kQ2_K:
      read_q2_k(data, sub, group);
      break;
    case DType::kQ3_K:
      read_q3_k(data, sub, group);
      break;
    case DType::kQ4_K:
      read_paired_nibbles(data + 16, sub, group);
      read_six_bit_scales(data, sub, group);
      break;
    case DType::kQ5_K:
      read_q5_k(data, sub, group);
      break;
    case DType::kQ6_K:
      read_q6_k(data, sub, group);
      break;
    case DType::kIQ4_NL:
      read_nibbles(data + 2, group);
      map_codes(kIq4Values, group);
      set_scales(group, half_at(data, 0), 0);
      break;
    case DType::kIQ4_XS:
      read_iq4_xs(data, sub, group);
      break;
    case DType::kMXFP4:
      read_mxfp4(data, group);
      break;
    default:
      CHECK(is_quantized(dtype));
  }
  return group;
}

}  // namespace winnow::ref

#include "tensor/qformats.h"

#include <array>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "tensor/half.h"

namespace winnow {
namespace {

// Every function below turns one group at `in` into floats at `out`, with the multiplications and
// additions of the reference in its order; none may be fused or reassociated.

constexpr int kSuperGroup = 256;  // elements of a K-type group

// The 16 levels of IQ4_NL and IQ4_XS, and the doubled values of 4-bit floats (e2m1).
constexpr std::array<int8_t, 16> kNonLinearLevels = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                     1,    13,   25,  38,  53,  69,  89,  113};
constexpr std::array<int8_t, 16> kFloat4Levels = {0, 1,  2,  3,  4,  6,  8,  12,
                                                  0, -1, -2, -3, -4, -6, -8, -12};

int byte_at(const std::byte* in, int idx) { return std::to_integer<int>(in[idx]); }
int signed_byte_at(const std::byte* in, int idx) { return static_cast<int8_t>(byte_at(in, idx)); }

template <class T>
T load(const std::byte* in) {
  T value;
  std::memcpy(&value, in, sizeof(T));
  return value;
}

float half_at(const std::byte* in) { return f16_to_float(load<uint16_t>(in)); }

// Of 16 bytes: element e < 16 is the low half of byte e, element 16 + e its high half.
int nibble(const std::byte* in, int element) {
  const int byte = byte_at(in, element % 16);
  return element < 16 ? byte & 0xF : byte >> 4;
}

int bit(const std::byte* in, int idx) { return byte_at(in, idx / 8) >> (idx % 8) & 1; }

void q4_0(const std::byte* in, float* out) {  // f16 scale, 16 bytes of nibbles
  const float scale = half_at(in);
  for (int e = 0; e < 32; ++e) out[e] = scale * static_cast<float>(nibble(in + 2, e) - 8);
}

void q4_1(const std::byte* in, float* out) {  // f16 scale, f16 minimum, nibbles
  const float scale = half_at(in);
  const float minimum = half_at(in + 2);
  for (int e = 0; e < 32; ++e) out[e] = scale * static_cast<float>(nibble(in + 4, e)) + minimum;
}

void q5_0(const std::byte* in, float* out) {  // f16 scale, 32 fifth bits, nibbles
  const float scale = half_at(in);
  for (int e = 0; e < 32; ++e) {
    out[e] = scale * static_cast<float>((nibble(in + 6, e) | bit(in + 2, e) << 4) - 16);
  }
}

void q5_1(const std::byte* in, float* out) {  // f16 scale, f16 minimum, 32 fifth bits, nibbles
  const float scale = half_at(in);
  const float minimum = half_at(in + 2);
  for (int e = 0; e < 32; ++e) {
    out[e] = scale * static_cast<float>(nibble(in + 8, e) | bit(in + 4, e) << 4) + minimum;
  }
}

void q8_0(const std::byte* in, float* out) {  // f16 scale, 32 signed bytes
  const float scale = half_at(in);
  for (int e = 0; e < 32; ++e) out[e] = scale * static_cast<float>(signed_byte_at(in + 2, e));
}

// Of 64 bytes, 2 bits per element: each run of 32 bytes holds 128 elements, four to a byte, 32
// apart.
int two_bits(const std::byte* in, int element) {
  return byte_at(in, element / 128 * 32 + element % 32) >> (element % 128 / 32 * 2) & 3;
}

void q2_k(const std::byte* in,
          float* out) {  // 16 x (4-bit scale, 4-bit minimum), 2-bit values, f16 d, f16 dmin
  const float d = half_at(in + 80);
  const float dmin = half_at(in + 82);
  for (int e = 0; e < kSuperGroup; ++e) {
    const int packed = byte_at(in, e / 16);
    const float scale = d * static_cast<float>(packed & 0xF);
    const float minimum = dmin * static_cast<float>(packed >> 4);
    out[e] = scale * static_cast<float>(two_bits(in + 16, e)) - minimum;
  }
}

// The 16 scales of Q3_K: low 4 bits in 8 bytes of nibbles, high 2 bits in the 4 bytes after them;
// offset 32.
int q3_k_scale(const std::byte* in, int idx) {
  const int low = byte_at(in, idx % 8) >> (idx / 8 * 4) & 0xF;
  const int high = byte_at(in, 8 + idx % 4) >> (idx / 4 * 2) & 3;
  return (low | high << 4) - 32;
}

void q3_k(const std::byte* in, float* out) {  // 32 bytes of third bits, 2-bit values, scales, f16 d
  const float d = half_at(in + 108);
  for (int e = 0; e < kSuperGroup; ++e) {
    const float scale = d * static_cast<float>(q3_k_scale(in + 96, e / 16));
    const int third_bit = byte_at(in, e % 32) >> (e / 32) & 1;
    out[e] = scale * static_cast<float>(two_bits(in + 32, e) - (third_bit == 0 ? 4 : 0));
  }
}

struct ScaleAndMinimum {
  int scale = 0;
  int minimum = 0;
};

// The eight 6-bit pairs of Q4_K and Q5_K in 12 bytes: pairs 0-3 in the low 6 bits of bytes 0-3 and
// 4-7; of pairs 4-7 the low 4 bits are in bytes 8-11 and the high 2 bits on top of the earlier
// bytes.
ScaleAndMinimum packed_pair(const std::byte* in, int idx) {
  const int scale_byte = byte_at(in, idx % 4);
  const int minimum_byte = byte_at(in, 4 + idx % 4);
  if (idx < 4) return {scale_byte & 0x3F, minimum_byte & 0x3F};
  const int low = byte_at(in, 8 + idx % 4);
  return {(low & 0xF) | (scale_byte >> 2 & 0x30), low >> 4 | (minimum_byte >> 2 & 0x30)};
}

// Of 128 bytes: each run of 32 bytes holds 64 elements, first the low halves, then the high ones.
int nibble_of_64(const std::byte* in, int element) {
  return byte_at(in, element / 64 * 32 + element % 32) >> (element % 64 / 32 * 4) & 0xF;
}

void q4_k(const std::byte* in, float* out) {  // f16 d, f16 dmin, 8 pairs, nibbles
  const float d = half_at(in);
  const float dmin = half_at(in + 2);
  for (int e = 0; e < kSuperGroup; ++e) {
    const ScaleAndMinimum pair = packed_pair(in + 4, e / 32);
    const float scale = d * static_cast<float>(pair.scale);
    const float minimum = dmin * static_cast<float>(pair.minimum);
    out[e] = scale * static_cast<float>(nibble_of_64(in + 16, e)) - minimum;
  }
}

void q5_k(const std::byte* in,
          float* out) {  // f16 d, f16 dmin, 8 pairs, 32 bytes of fifth bits, nibbles
  const float d = half_at(in);
  const float dmin = half_at(in + 2);
  for (int e = 0; e < kSuperGroup; ++e) {
    const ScaleAndMinimum pair = packed_pair(in + 4, e / 32);
    const float scale = d * static_cast<float>(pair.scale);
    const float minimum = dmin * static_cast<float>(pair.minimum);
    const int fifth_bit = byte_at(in + 16, e % 32) >> (e / 32) & 1;
    out[e] = scale * static_cast<float>(nibble_of_64(in + 48, e) | fifth_bit << 4) - minimum;
  }
}

void q6_k(const std::byte* in,
          float* out) {  // 128 bytes of low nibbles, 64 of high 2 bits, 16 int8 scales, f16 d
  const float d = half_at(in + 208);
  for (int e = 0; e < kSuperGroup; ++e) {
    const float scale = d * static_cast<float>(signed_byte_at(in + 192, e / 16));
    const int low = byte_at(in, e / 128 * 64 + e % 64) >> (e % 128 / 64 * 4) & 0xF;
    out[e] = scale * static_cast<float>((low | two_bits(in + 128, e) << 4) - 32);
  }
}

void iq4_nl(const std::byte* in, float* out) {  // f16 scale, nibbles that index the levels
  const float scale = half_at(in);
  for (int e = 0; e < 32; ++e)
    out[e] = scale * static_cast<float>(kNonLinearLevels[nibble(in + 2, e)]);
}

void iq4_xs(const std::byte* in,
            float* out) {  // f16 d, 8 x (2 high bits, 4 low bits) of scale, nibbles
  const float d = half_at(in);
  const int high_bits = load<uint16_t>(in + 2);
  for (int idx = 0; idx < 8; ++idx) {
    const int low = byte_at(in + 4, idx / 2) >> (idx % 2 * 4) & 0xF;
    const float scale = d * static_cast<float>((low | (high_bits >> (2 * idx) & 3) << 4) - 32);
    for (int e = 0; e < 32; ++e) {
      out[idx * 32 + e] =
          scale * static_cast<float>(kNonLinearLevels[nibble(in + 8 + idx * 16, e)]);
    }
  }
}

void mxfp4(const std::byte* in, float* out) {  // e8m0 exponent, nibbles that are e2m1 floats
  // The levels are doubled, so the scale is 2^(exponent - 128); its two smallest values are
  // subnormal.
  const uint32_t exponent = static_cast<uint32_t>(byte_at(in, 0));
  const float scale =
      std::bit_cast<float>(exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23);
  for (int e = 0; e < 32; ++e)
    out[e] = scale * static_cast<float>(kFloat4Levels[nibble(in + 1, e)]);
}

void f16(const std::byte* in, float* out) { *out = half_at(in); }
void bf16(const std::byte* in, float* out) { *out = bf16_to_float(load<uint16_t>(in)); }

using GroupFunction = void (*)(const std::byte* in, float* out);

GroupFunction group_function(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      break;
    case DType::kF16:
      return f16;
    case DType::kBF16:
      return bf16;
    case DType::kQ4_0:
      return q4_0;
    case DType::kQ4_1:
      return q4_1;
    case DType::kQ5_0:
      return q5_0;
    case DType::kQ5_1:
      return q5_1;
    case DType::kQ8_0:
      return q8_0;
    case DType::kQ2_K:
      return q2_k;
    case DType::kQ3_K:
      return q3_k;
    case DType::kQ4_K:
      return q4_k;
    case DType::kQ5_K:
      return q5_k;
    case DType::kQ6_K:
      return q6_k;
    case DType::kIQ4_NL:
      return iq4_nl;
    case DType::kIQ4_XS:
      return iq4_xs;
    case DType::kMXFP4:
      return mxfp4;
  }
  check_failed(__FILE__, __LINE__, "known dtype");
}

}  // namespace

void dequantize(DType dtype, const std::byte* data, int64_t elements, float* out) {
  const DTypeInfo& info = dtype_info(dtype);
  CHECK(elements % info.group_size == 0);
  if (dtype == DType::kF32) {
    std::memcpy(out, data, static_cast<size_t>(elements) * sizeof(float));
    return;
  }
  const GroupFunction dequantize_group = group_function(dtype);
  for (int64_t e = 0; e < elements; e += info.group_size) {
    dequantize_group(data, out + e);
    data += info.group_bytes;
  }
}

}  // namespace winnow

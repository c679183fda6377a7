// What this CPU and its operating system offer, asked once.
#pragma once

namespace winnow {

struct CpuFeatures {
  bool avx2 = false;         // AVX2, FMA, F16C
  bool avx512 = false;       // F, BW, VL, DQ, VNNI
  bool avx512_bf16 = false;  // avx512 and AVX512_BF16
  bool amx = false;   // avx512_bf16, VBMI, AMX tile/int8/bf16, permission to use tile registers
  bool neon = false;  // Armv8.2 dot product and fp16
};

const CpuFeatures& cpu_features();

}  // namespace winnow

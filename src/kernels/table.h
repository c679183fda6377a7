// KernelTable: one instruction-set level's version of every kernel, chosen once at run time.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace winnow {

struct LinearKernels;
struct AttentionKernels;
struct BlockKernels;
struct ElementwiseKernels;

// From the plainest to the most capable; each x86 level includes those before it.
enum class Isa {
  kScalar,      // ref/: the executable specification
  kAvx2,        // AVX2, FMA, F16C
  kAvx512,      // AVX-512 F, BW, VL, DQ, VNNI
  kAvx512Bf16,  // and AVX512_BF16
  kAmx,         // and AMX tile, int8, bf16
  kNeon,        // Armv8.2 with dot product and fp16
};

struct KernelTable {
  Isa isa;
  const LinearKernels* linear;
  const AttentionKernels* attention;
  const BlockKernels* blocks;
  const ElementwiseKernels* elementwise;
};

std::string_view isa_name(Isa isa);

// Every level that this build knows, plainest first, whether or not this CPU has it.
std::span<const Isa> known_isas();
bool cpu_supports(Isa isa);
// Requires cpu_supports(isa).
const KernelTable& kernel_table(Isa isa);

// The level named by `forced` (the value of WINNOW_ISA; empty = the best this CPU has).
// kInvalidArgument if the name is unknown, kUnsupported if this CPU lacks it.
Result<const KernelTable*> select_kernels(std::string_view forced);

}  // namespace winnow

// In place of src/kernels/select.cc: the levels above AVX2 under names that say what they are. They
// show that the kernels compute the right numbers, never that they ran on hardware.
#include <array>

#include "kernels/attention_kernels.h"
#include "kernels/block_kernels.h"
#include "kernels/elementwise.h"
#include "kernels/linear_kernels.h"
#include "kernels/table.h"

namespace winnow {
namespace {

constexpr std::array kEmulated = {Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmx};

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kAvx512:
      return "emulated_avx512";
    case Isa::kAvx512Bf16:
      return "emulated_avx512_bf16";
    case Isa::kAmx:
      return "emulated_amx";
    default:
      return "scalar";
  }
}

std::span<const Isa> known_isas() { return kEmulated; }

// The emulation itself, and what the kernels do in 256 bits, takes AVX2.
bool cpu_supports(Isa) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
}

const KernelTable& kernel_table(Isa isa) {
  static const KernelTable scalar{Isa::kScalar, &linear_kernels_scalar(),
                                  &attention_kernels_scalar(), &block_kernels_scalar(),
                                  &elementwise_kernels_scalar()};
  static const KernelTable avx512{Isa::kAvx512, &linear_kernels_avx512(),
                                  &attention_kernels_avx512(), &block_kernels_avx512(),
                                  &elementwise_kernels_avx512()};
  static const KernelTable avx512_bf16{Isa::kAvx512Bf16, &linear_kernels_avx512bf16(),
                                       &attention_kernels_avx512bf16(), &block_kernels_avx512(),
                                       &elementwise_kernels_avx512()};
  static const KernelTable amx{Isa::kAmx, &linear_kernels_amx(), &attention_kernels_amx(),
                               &block_kernels_avx512(), &elementwise_kernels_avx512()};
  switch (isa) {
    case Isa::kAvx512:
      return avx512;
    case Isa::kAvx512Bf16:
      return avx512_bf16;
    case Isa::kAmx:
      return amx;
    default:
      return scalar;
  }
}

}  // namespace winnow

// Chooses the kernels of the best instruction-set level this CPU has.
#include <array>

#include "kernels/attention_kernels.h"
#include "kernels/block_kernels.h"
#include "kernels/cpu_features.h"
#include "kernels/elementwise.h"
#include "kernels/linear_kernels.h"
#include "kernels/table.h"

namespace winnow {
namespace {

#if defined(__x86_64__)
constexpr std::array kKnown = {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmx};
#elif defined(__aarch64__)
constexpr std::array kKnown = {Isa::kScalar, Isa::kNeon};
#else
constexpr std::array kKnown = {Isa::kScalar};
#endif

constexpr std::string_view kNames[] = {"scalar", "avx2", "avx512", "avx512_bf16", "amx", "neon"};

std::string known_names() {
  std::string names;
  for (const Isa isa : kKnown) {
    if (!names.empty()) names += ", ";
    names += isa_name(isa);
  }
  return names;
}

}  // namespace

std::string_view isa_name(Isa isa) { return kNames[static_cast<int>(isa)]; }

std::span<const Isa> known_isas() { return kKnown; }

bool cpu_supports(Isa isa) {
  const CpuFeatures& cpu = cpu_features();
  switch (isa) {
    case Isa::kScalar:
      return true;
    case Isa::kAvx2:
      return cpu.avx2;
    case Isa::kAvx512:
      return cpu.avx512;
    case Isa::kAvx512Bf16:
      return cpu.avx512_bf16;
    case Isa::kAmx:
      return cpu.amx;
    case Isa::kNeon:
      return cpu.neon;
  }
  return false;
}

const KernelTable& kernel_table(Isa isa) {
  static const KernelTable scalar{Isa::kScalar, &linear_kernels_scalar(),
                                  &attention_kernels_scalar(), &block_kernels_scalar(),
                                  &elementwise_kernels_scalar()};
#if defined(__x86_64__)
  static const KernelTable avx2{Isa::kAvx2, &linear_kernels_avx2(), &attention_kernels_avx2(),
                                &block_kernels_avx2(), &elementwise_kernels_avx2()};
  static const KernelTable avx512{Isa::kAvx512, &linear_kernels_avx512(),
                                  &attention_kernels_avx512(), &block_kernels_avx512(),
                                  &elementwise_kernels_avx512()};
  static const KernelTable avx512_bf16{Isa::kAvx512Bf16, &linear_kernels_avx512bf16(),
                                       &attention_kernels_avx512bf16(), &block_kernels_avx512(),
                                       &elementwise_kernels_avx512()};
  static const KernelTable amx{Isa::kAmx, &linear_kernels_amx(), &attention_kernels_amx(),
                               &block_kernels_avx512(), &elementwise_kernels_avx512()};
  switch (isa) {
    case Isa::kAvx2:
      return avx2;
    case Isa::kAvx512:
      return avx512;
    case Isa::kAvx512Bf16:
      return avx512_bf16;
    case Isa::kAmx:
      return amx;
    default:
      return scalar;
  }
#elif defined(__aarch64__)
  static const KernelTable neon{Isa::kNeon, &linear_kernels_neon(), &attention_kernels_neon(),
                                &block_kernels_neon(), &elementwise_kernels_neon()};
  return isa == Isa::kNeon ? neon : scalar;
#else
  static_cast<void>(isa);
  return scalar;
#endif
}

Result<const KernelTable*> select_kernels(std::string_view forced) {
  if (forced.empty()) {
    Isa best = Isa::kScalar;
    for (const Isa isa : kKnown) {
      if (cpu_supports(isa)) best = isa;
    }
    return &kernel_table(best);
  }
  for (const Isa isa : kKnown) {
    if (isa_name(isa) != forced) continue;
    if (cpu_supports(isa)) return &kernel_table(isa);
    return fail(ErrorCode::kUnsupported, "WINNOW_ISA=%s: this CPU does not have it",
                isa_name(isa).data());
  }
  return fail(ErrorCode::kInvalidArgument, "WINNOW_ISA=%.*s: unknown; expected one of: %s",
              static_cast<int>(forced.size()), forced.data(), known_names().c_str());
}

}  // namespace winnow

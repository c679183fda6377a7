#include "kernels/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace winnow {
namespace {

#if defined(__x86_64__)
// Linux hands out the 8 KiB of tile state only to a process that asks for it.
bool request_tile_registers() {
  constexpr long kArchReqXcompPerm = 0x1023;
  constexpr long kXfeatureTileData = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureTileData) == 0;
}

// What compilers name differently, or not at all, is read from the CPU itself.
struct CpuId {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;

  CpuId(unsigned leaf, unsigned subleaf) {
    __get_cpuid_count(leaf, subleaf, &eax, &ebx, &ecx, &edx);
  }
};

bool cpu_has_f16c() { return (CpuId(1, 0).ecx & (1U << 29)) != 0; }

bool cpu_has_bf16() { return (CpuId(7, 1).eax & (1U << 5)) != 0; }

bool cpu_has_vbmi() { return (CpuId(7, 0).ecx & (1U << 1)) != 0; }

bool cpu_has_amx() {
  constexpr unsigned kBf16 = 1U << 22, kTile = 1U << 24, kInt8 = 1U << 25;
  constexpr unsigned kAll = kBf16 | kTile | kInt8;
  return (CpuId(7, 0).edx & kAll) == kAll;
}
#endif

CpuFeatures detect() {
  CpuFeatures cpu;
#if defined(__x86_64__)
  __builtin_cpu_init();
  cpu.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && cpu_has_f16c();
  cpu.avx512 = cpu.avx2 && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni");
  cpu.avx512_bf16 = cpu.avx512 && cpu_has_bf16();
  cpu.amx = cpu.avx512_bf16 && cpu_has_vbmi() && cpu_has_amx() && request_tile_registers();
#elif defined(__aarch64__)
  constexpr unsigned long kHalf = 1UL << 10, kDotProduct = 1UL << 20;
  const unsigned long capabilities = getauxval(AT_HWCAP);
  cpu.neon = (capabilities & kHalf) != 0 && (capabilities & kDotProduct) != 0;
#endif
  return cpu;
}

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

}  // namespace winnow

// In place of the compiler's header where the 512-bit kernels are built for a machine without those
// instructions: the compiler's own names lead to emulated_avx512.h. An instruction that is missing
// there is an error of the compiler, for its own function needs a flag that these files do not get.
#pragma once

#include_next <immintrin.h>

#include "emulation/emulated_avx512.h"

// Without optimisation some are macros already.
#undef _mm512_cmp_ps_mask
#undef _mm512_cvtps_ph
#undef _mm512_extracti64x4_epi64
#undef _mm512_roundscale_ps
#undef _mm512_slli_epi32
#undef _mm512_srli_epi16
#undef _mm512_srli_epi32

#define _mm512_loadu_ps emulated_loadu_ps
#define _mm512_loadu_si512 emulated_loadu_si512
#define _mm512_load_ps emulated_load_ps
#define _mm512_load_si512 emulated_load_si512
#define _mm512_storeu_ps emulated_storeu_ps
#define _mm512_storeu_si512 emulated_storeu_si512
#define _mm512_store_ps emulated_store_ps
#define _mm512_store_si512 emulated_store_si512
#define _mm512_maskz_loadu_ps emulated_maskz_loadu_ps
#define _mm512_maskz_loadu_epi16 emulated_maskz_loadu_epi16
#define _mm512_mask_storeu_ps emulated_mask_storeu_ps
#define _mm512_set1_ps emulated_set1_ps
#define _mm512_setzero_ps emulated_setzero_ps
#define _mm512_add_ps emulated_add_ps
#define _mm512_sub_ps emulated_sub_ps
#define _mm512_mul_ps emulated_mul_ps
#define _mm512_div_ps emulated_div_ps
#define _mm512_fmadd_ps emulated_fmadd_ps
#define _mm512_sqrt_ps emulated_sqrt_ps
#define _mm512_max_ps emulated_max_ps
#define _mm512_min_ps emulated_min_ps
#define _mm512_roundscale_ps emulated_roundscale_ps
#define _mm512_reduce_add_ps emulated_reduce_add_ps
#define _mm512_reduce_max_ps emulated_reduce_max_ps
#define _mm512_cvtss_f32 emulated_cvtss_f32
#define _mm512_cmp_ps_mask emulated_cmp_ps_mask
#define _mm512_mask_blend_ps emulated_mask_blend_ps
#define _mm512_set1_epi32 emulated_set1_epi32
#define _mm512_setzero_si512 emulated_setzero_si512
#define _mm512_add_epi32 emulated_add_epi32
#define _mm512_sub_epi32 emulated_sub_epi32
#define _mm512_max_epi32 emulated_max_epi32
#define _mm512_and_si512 emulated_and_si512
#define _mm512_or_si512 emulated_or_si512
#define _mm512_slli_epi32 emulated_slli_epi32
#define _mm512_srli_epi32 emulated_srli_epi32
#define _mm512_sub_epi16 emulated_sub_epi16
#define _mm512_srli_epi16 emulated_srli_epi16
#define _mm512_movepi16_mask emulated_movepi16_mask
#define _mm512_packus_epi32 emulated_packus_epi32
#define _mm512_permutexvar_epi64 emulated_permutexvar_epi64
#define _mm512_maskz_permutexvar_epi8 emulated_maskz_permutexvar_epi8
#define _mm512_mask_blend_epi32 emulated_mask_blend_epi32
#define _mm512_permutex2var_epi32 emulated_permutex2var_epi32
#define _mm512_dpwssd_epi32 emulated_dpwssd_epi32
#define _mm512_dpbusd_epi32 emulated_dpbusd_epi32
#define _mm512_castsi512_ps emulated_castsi512_ps
#define _mm512_castps_si512 emulated_castps_si512
#define _mm512_castsi512_si256 emulated_castsi512_si256
#define _mm512_extracti64x4_epi64 emulated_extracti64x4_epi64
#define _mm512_cvtepi32_ps emulated_cvtepi32_ps
#define _mm512_cvtps_epi32 emulated_cvtps_epi32
#define _mm512_cvtepu16_epi32 emulated_cvtepu16_epi32
#define _mm512_cvtepi16_epi32 emulated_cvtepi16_epi32
#define _mm512_cvtepi32_epi16 emulated_cvtepi32_epi16
#define _mm512_cvtph_ps emulated_cvtph_ps
#define _mm512_cvtps_ph emulated_cvtps_ph
#define _mm512_cvtneps_pbh emulated_cvtneps_pbh
#define _mm512_cvtne2ps_pbh emulated_cvtne2ps_pbh
#define _mm512_dpbf16_ps emulated_dpbf16_ps

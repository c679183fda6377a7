// The entries of LinearKernels, made of the generic algorithms and one level's vocabulary.
#pragma once

#include "kernels/generic/linear_batch.inl.h"
#include "kernels/generic/linear_generate.inl.h"
#include "kernels/generic/linear_plain.inl.h"
#include "kernels/generic/linear_prompt.inl.h"
#include "kernels/generic/linear_quantize.inl.h"

namespace winnow {
namespace {

inline void prompt_entry(const LinearTask& task) {
  switch (task.dtype) {
    case DType::kF32:
      return prompt_plain<PlainF32>(task);
    case DType::kF16:
      return prompt_plain<PlainF16>(task);
    case DType::kBF16:
      return prompt_plain<PlainBF16>(task);
    default:
      return with_type(task.dtype, PromptQuantized{task});
  }
}

// From this many rows on a weight row is unpacked once for all.
constexpr int64_t kBatchFrom = 3;

struct GenerateQuantized {
  const LinearTask& task;
  template <class Type>
  void run() const {
    if (task.num_rows >= kBatchFrom) return generate_batch<Type>(task);
    if (task.num_rows == 2) return generate_rows<Type, 2>(task, 0);
    generate_rows<Type, 1>(task, 0);
  }
};

inline void generate_entry(const LinearTask& task) {
  switch (task.dtype) {
    case DType::kF32:
      return generate_plain<PlainF32>(task);
    case DType::kF16:
      return generate_plain<PlainF16>(task);
    case DType::kBF16:
      return generate_plain<PlainBF16>(task);
    default:
      return with_type(task.dtype, GenerateQuantized{task});
  }
}

inline void order_codes(int16_t* codes, int64_t num_groups) {
  for (int64_t group = 0; group < num_groups; ++group) split_even_odd(codes + group * kInputGroup);
}

constexpr int64_t kLinearScratchBytes = sizeof(BatchPanel);
static_assert(sizeof(BatchPanel) >= sizeof(PlainPanel));

constexpr LinearKernels kKernels{.quantize = quantize_rows,
                                 .pack_tiles = nullptr,
                                 .prompt = prompt_entry,
                                 .generate = generate_entry,
                                 .order_codes = kSplitsEvenOdd ? order_codes : nullptr,
                                 .panel_outputs = kPanelOutputs,
                                 .prompt_outputs = kPanelOutputs,
                                 .scratch_bytes = kLinearScratchBytes};

}  // namespace
}  // namespace winnow
